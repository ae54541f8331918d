package api_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
)

// taker reads a body and answers as its fields say.
type taker struct {
	refused bool
	err     error
	read    int64
}

func (k *taker) acceptBody(ctx context.Context, body io.Reader) (any, bool, error) {
	n, err := io.Copy(io.Discard, body)
	k.read = n
	if err == nil && errors.Is(k.err, context.DeadlineExceeded) {
		<-ctx.Done()
		err = ctx.Err()
	}
	return map[string]int64{"taken": n}, k.refused, errors.Join(err, k.err)
}

func sendPost(t *testing.T, h http.Handler, path, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

func TestAuditAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		taker taker
		body  string
		code  int
		says  string
		retry string
	}{
		{"stored", taker{}, "{}", http.StatusOK, `{"taken":2}`, ""},
		{"nothing in it can be used", taker{refused: true}, "{}", http.StatusUnprocessableEntity, `{"taken":2}`, ""},
		{"broken", taker{err: errors.New("cut short")}, "{}", http.StatusBadRequest, "cut short", ""},
		{"the database does not keep up", taker{err: fmt.Errorf("x: %w", api.ErrBusy)}, "{}", http.StatusServiceUnavailable, "send them again", "5"},
		{"unpacks to too much", taker{err: fmt.Errorf("x: %w", api.ErrTooLarge)}, "{}", http.StatusRequestEntityTooLarge, "50000 events in one body: send smaller batches", ""},
		{"too large", taker{}, strings.Repeat("x", 10<<20+1), http.StatusRequestEntityTooLarge, "smaller batches", ""},
		{"as large as can be", taker{}, strings.Repeat("x", 10<<20), http.StatusOK, "10485760", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := api.Server{Audit: &api.Audit{Take: c.taker.acceptBody, Access: api.Access{Open: true}}}.Handler()
			code, body, header := sendPost(t, h, "/audit", c.body)
			require.Equal(t, c.code, code, body)
			require.Contains(t, body, c.says)
			require.Equal(t, c.retry, header.Get("Retry-After"))
			if code >= 400 && !c.taker.refused {
				require.Equal(t, "application/problem+json", header.Get("Content-Type"))
			}
		})
	}
}

// TestAuditFlood sends more than the rate allows: who sends too much is answered when to come again.
func TestAuditFlood(t *testing.T) {
	t.Parallel()
	k := taker{}
	h := api.Server{Audit: &api.Audit{Take: k.acceptBody, Access: api.Access{Open: true}}}.Handler()
	codes := map[int]int{}
	for range 400 {
		code, _, header := sendPost(t, h, "/audit", "{}")
		codes[code]++
		if code == http.StatusTooManyRequests {
			require.Equal(t, "1", header.Get("Retry-After"))
		}
	}
	require.GreaterOrEqual(t, codes[http.StatusOK], 100, "the burst")
	require.Positive(t, codes[http.StatusTooManyRequests])
	require.Len(t, codes, 2)
}

func TestAuditAccess(t *testing.T) {
	t.Parallel()
	tokens := func() ([]string, error) { return []string{"old", "new"}, nil }
	for _, c := range []struct {
		name   string
		access api.Access
		header []string
		code   int
		says   string
	}{
		{"open", api.Access{Open: true}, nil, http.StatusOK, ""},
		{"nobody is known", api.Access{}, nil, http.StatusForbidden, "--audit-token-file"},
		{"no token", api.Access{Tokens: tokens}, nil, http.StatusUnauthorized, "bearer token"},
		{"a token", api.Access{Tokens: tokens}, []string{"Authorization", "Bearer new"}, http.StatusOK, ""},
		{"the one before", api.Access{Tokens: tokens}, []string{"Authorization", "Bearer old"}, http.StatusOK, ""},
		{"a wrong token", api.Access{Tokens: tokens}, []string{"Authorization", "Bearer ne"}, http.StatusUnauthorized, ""},
		{"no bearer", api.Access{Tokens: tokens}, []string{"Authorization", "Basic new"}, http.StatusUnauthorized, ""},
		{"an empty token", api.Access{Tokens: func() ([]string, error) { return []string{""}, nil }}, []string{"Authorization", "Bearer "}, http.StatusUnauthorized, ""},
		{"the tokens cannot be read", api.Access{Tokens: func() ([]string, error) { return nil, errors.New("gone") }}, []string{"Authorization", "Bearer new"}, http.StatusUnauthorized, ""},
		{"no certificate", api.Access{Certificates: true}, nil, http.StatusUnauthorized, "client certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := taker{}
			h := api.Server{Audit: &api.Audit{Take: k.acceptBody, Access: c.access}}.Handler()
			code, body, _ := sendPost(t, h, "/audit", "{}", c.header...)
			require.Equal(t, c.code, code, body)
			require.Contains(t, body, c.says)
			require.Equal(t, c.code == http.StatusOK, k.read > 0, "the body of a stranger is not read")
		})
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	return authority{}.signCertificate(t, "ca")
}

// signCertificate makes a certificate of a name; the authority that is empty signs itself.
func (a authority) signCertificate(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: a.cert == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	return authority{cert, key}
}

// TestAuditClientCertificates sends over TLS with certificates of the right and wrong authority and name.
func TestAuditClientCertificates(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t), newAuthority(t)
	k := taker{}
	server := httptest.NewUnstartedServer(api.Server{Audit: &api.Audit{Take: k.acceptBody, Access: api.Access{Certificates: true, Clients: []string{"kube-apiserver"}}}}.Handler())
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: x509.NewCertPool()}
	server.TLS.ClientCAs.AddCert(ca.cert)
	server.StartTLS()
	t.Cleanup(server.Close)
	post := func(who *authority) (int, error) {
		transport := server.Client().Transport.(*http.Transport).Clone()
		if who != nil {
			transport.TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{who.cert.Raw}, PrivateKey: who.key}}
		}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/audit", bytes.NewReader([]byte("{}")))
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	right, wrongName, wrongCA := ca.signCertificate(t, "kube-apiserver"), ca.signCertificate(t, "somebody"), stranger.signCertificate(t, "kube-apiserver")
	code, err := post(&right)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	code, err = post(&wrongName)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, code)
	code, err = post(nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, code)
	_, err = post(&wrongCA)
	require.Error(t, err, "the handshake fails")
}
