package manifests_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/evictrail/evictrail/deploy"
)

// renderManifest generates a manifest.
func renderManifest(t *testing.T, name string, o deploy.Options) string {
	t.Helper()
	text, err := deploy.YAML(name, o)
	require.NoError(t, err)
	return text
}

// decodeManifest reads the documents of a manifest as an API server does, and refuses fields that it does not know.
func decodeManifest(t *testing.T, text string) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, admissionv1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for document := range strings.SplitSeq(text, "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		require.NoError(t, err, document)
		objects = append(objects, object)
	}
	return objects
}

// authority signs certificates.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.issueCertificate(t, "test CA")
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	return a
}

// issueCertificate makes a certificate of the authority, for a DNS name or an IP address; the first one is its own.
func (a *authority) issueCertificate(t *testing.T, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.DNSNames, template.ExtKeyUsage = true, true, nil, nil
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert, key
}

// writeCertificate writes a certificate and its key as NAME.crt and NAME.key.
func (a *authority) writeCertificate(t *testing.T, dir, name string) {
	t.Helper()
	cert, key := a.issueCertificate(t, name)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for ending, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: cert.Raw},
		".key": {Type: "PRIVATE KEY", Bytes: der},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+ending), pem.EncodeToMemory(block), 0o600))
	}
}

// serveHTTPS serves HTTPS on a free port of 127.0.0.1 with a certificate for this name alone. It asks for client certificates
// of the same authority, without insisting.
func (a *authority) serveHTTPS(t *testing.T, name string, handler http.Handler) *httptest.Server {
	t.Helper()
	cert, key := a.issueCertificate(t, name)
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clients,
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // handshakes that are meant to fail
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// receiveValue waits for what an endpoint hands on, which may be a little after its answer.
func receiveValue[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}
