package pg_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/store/pg"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// signCertificate returns a certificate and its key, for a user, or for a server of an address.
func (a authority) signCertificate(t *testing.T, serial int64, name string, address net.IP) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if address != nil {
		template.IPAddresses = []net.IP{address}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// securedServer is a Postgres that is reached over TCP, with TLS alone.
type securedServer struct {
	data  string // directory
	port  int
	admin string // URL, over its socket
}

// writeFile puts a file into the server's directory, as its own.
func (s securedServer) writeFile(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join(s.data, name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	info, err := os.Stat(s.data)
	require.NoError(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	require.NoError(t, os.Chown(path, int(owner.Uid), int(owner.Gid)))
}

// execSQL runs statements as the server's owner.
func (s securedServer) execSQL(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.admin)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, text := range statements {
		_, err := conn.Exec(t.Context(), text)
		require.NoError(t, err, text)
	}
}

// queryValue returns one value as the server's owner reads it.
func (s securedServer) queryValue(t *testing.T, text string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.admin)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var value string
	require.NoError(t, conn.QueryRow(t.Context(), text).Scan(&value), text)
	return value
}

// buildURL is that of a user, over TCP.
func (s securedServer) buildURL(user string, more ...string) string {
	q := url.Values{"sslmode": {"verify-full"}, "pool_max_conns": {"4"}, "pool_max_conn_lifetime": {"100ms"}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	u := url.URL{Scheme: "postgres", User: url.User(user), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "evictrail", RawQuery: q.Encode()}
	return u.String()
}

// startSecured makes a server with the schema, which user writer may use by a password and user certified by a certificate.
func startSecured(t *testing.T, ca authority, password string) securedServer {
	t.Helper()
	dir, err := os.MkdirTemp("", "evictrail-secured-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	first, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, Settings: map[string]string{"fsync": "off"}})
	require.NoError(t, err)
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", first.PID()))
	require.NoError(t, err)
	s := securedServer{data: first.DataDir(), admin: first.URL("evictrail")}
	st, err := store.Open(t.Context(), s.admin, "")
	require.NoError(t, err)
	_, err = st.Up(t.Context())
	require.NoError(t, err)
	st.Close()
	s.execSQL(t, store.Roles(), "SET password_encryption = 'scram-sha-256'", "CREATE ROLE writer LOGIN PASSWORD '"+password+"'", "CREATE ROLE certified LOGIN",
		"GRANT evictrail_writer TO writer, certified")
	require.NoError(t, first.Stop(t.Context()))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.port = listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	cert, key := ca.signCertificate(t, 2, "postgres", net.IPv4(127, 0, 0, 1))
	s.writeFile(t, "server.crt", cert)
	s.writeFile(t, "server.key", key)
	s.writeFile(t, "clients.crt", ca.pem)
	s.writeFile(t, "pg_hba.conf", []byte("local all all trust\nhostssl all certified 127.0.0.1/32 cert\nhostssl all writer 127.0.0.1/32 scram-sha-256\n"))
	sockets := filepath.Join(s.data, "sockets")
	require.NoError(t, os.Mkdir(sockets, 0o700))
	info, err := os.Stat(s.data)
	require.NoError(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	require.NoError(t, os.Chown(sockets, int(owner.Uid), int(owner.Gid)))
	s.admin = strings.Replace(s.admin, url.QueryEscape(hostIn(t, s.admin)), url.QueryEscape(sockets), 1)
	server := exec.Command(program, "-D", s.data, "-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(s.port), "-c", "unix_socket_directories="+sockets,
		"-c", "ssl=on", "-c", "ssl_cert_file=server.crt", "-c", "ssl_key_file=server.key", "-c", "ssl_ca_file=clients.crt", "-c", "ssl_min_protocol_version=TLSv1.2", "-c", "fsync=off", "-c", "max_connections=50")
	server.Dir = s.data
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() == 0 {
		server.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	var log strings.Builder
	server.Stderr = &log
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	s.admin = strings.Replace(s.admin, "port=5432", "port="+strconv.Itoa(s.port), 1)
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), s.admin)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	return s
}

func hostIn(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u.Query().Get("host")
}

// canary is a password that must be seen nowhere.
const canary = "canary-5f2a"

// TestCredentialsAreReplacedUnderLoad writes without a pause while the password, the server's certificate and its CA are replaced.
func TestCredentialsAreReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
	old, next := newAuthority(t, "old CA"), newAuthority(t, "next CA")
	server := startSecured(t, old, canary+"-1")
	dir := t.TempDir()
	password, ca := filepath.Join(dir, "password"), filepath.Join(dir, "ca.crt")
	put := func(path string, text []byte) { // as Kubernetes does: whole or not at all
		require.NoError(t, os.WriteFile(path+".new", text, 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	put(password, []byte(canary+"-1\n"))
	put(ca, old.pem)
	s, err := store.Open(t.Context(), server.buildURL("writer", "sslrootcert", ca), password)
	require.NoError(t, err)
	t.Cleanup(s.Close)

	ctx, stop := context.WithCancel(t.Context())
	var written, again, lost atomic.Int64
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("c-%d-%d", w, n)
				for {
					err := s.Alive(t.Context(), name, time.Now())
					if err == nil {
						written.Add(1)
						break
					}
					if strings.Contains(err.Error(), canary) || !errors.Is(err, pg.ErrUnavailable) { // others the collector would not do again
						t.Errorf("%s: %v", name, err)
						lost.Add(1)
						break
					}
					again.Add(1)
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	step := func(what string) { // all connections were made again, and writing goes on
		t.Helper()
		time.Sleep(300 * time.Millisecond)
		before := written.Load()
		require.Eventually(t, func() bool { return written.Load() > before+50 }, 2*time.Minute, 10*time.Millisecond, what)
	}
	step("as it began")
	for i := 2; i <= 4; i++ {
		server.execSQL(t, fmt.Sprintf("ALTER ROLE writer PASSWORD '%s-%d'", canary, i))
		time.Sleep(200 * time.Millisecond)
		put(password, fmt.Appendf(nil, "%s-%d\n", canary, i))
		step("another password")
	}
	put(ca, append(append([]byte{}, old.pem...), next.pem...))
	step("both CAs")
	cert, key := next.signCertificate(t, 3, "postgres", net.IPv4(127, 0, 0, 1))
	server.writeFile(t, "server.key", key)
	server.writeFile(t, "server.crt", cert)
	server.execSQL(t, "SELECT pg_reload_conf()")
	step("another certificate")
	put(ca, next.pem)
	step("the CA before is gone")
	require.NoError(t, os.Remove(password))
	step("the file is away for a moment")
	stop()
	writers.Wait()
	require.Zero(t, lost.Load())
	require.Equal(t, strconv.FormatInt(written.Load(), 10), server.queryValue(t, "SELECT count(*)::text FROM evictrail.clusters WHERE cluster LIKE 'c-%'"))
	t.Logf("%d writes, of which none was lost; %d were done again", written.Load(), again.Load())
}

// TestClientCertificateIsReplaced comes with a certificate, and with another once its file has it.
func TestClientCertificateIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
	t.Parallel()
	ca := newAuthority(t, "CA")
	server := startSecured(t, ca, canary)
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	cert, key := ca.signCertificate(t, 11, "certified", nil)
	address := server.buildURL("certified", "sslrootcert", file("ca.crt", ca.pem), "sslcert", file("tls.crt", cert), "sslkey", file("tls.key", key))
	s, err := store.Open(t.Context(), address, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	serial := func() string {
		require.NoError(t, s.DB.Ping(t.Context()))
		return server.queryValue(t, "SELECT coalesce(min(client_serial), 0)::text FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'certified'")
	}
	require.Equal(t, "11", serial())
	cert, key = ca.signCertificate(t, 12, "certified", nil)
	file("tls.crt", cert) // while they do not fit each other the former hold
	time.Sleep(300 * time.Millisecond)
	require.Equal(t, "11", serial())
	file("tls.key", key)
	require.Eventually(t, func() bool { return serial() == "12" }, 2*time.Minute, 50*time.Millisecond)
}

// TestWrongServersAreRefused meets servers that somebody else could be.
func TestWrongServersAreRefused(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "CA"), newAuthority(t, "other CA")
	server := startSecured(t, ca, canary)
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte(canary), 0o600))
	file := func(name string, a authority) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, a.pem, 0o600))
		return path
	}
	right := file("right.crt", ca)
	for _, c := range []struct{ name, url, password, says string }{
		{"right", server.buildURL("writer", "sslrootcert", right), password, ""},
		{"signed by another", server.buildURL("writer", "sslrootcert", file("wrong.crt", other)), password, "certificate signed by unknown authority"},
		{"another name", strings.Replace(server.buildURL("writer", "sslrootcert", right), "127.0.0.1", "localhost", 1), password, "certificate is not valid for any names"},
		{"without TLS", server.buildURL("writer", "sslmode", "disable"), password, "no pg_hba.conf entry"},
		{"a wrong password", server.buildURL("writer", "sslrootcert", right), right, "check the user and the password file"},
		{"no such file", server.buildURL("writer", "sslrootcert", filepath.Join(dir, "none")), password, "files that can be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(t.Context(), c.url, c.password)
			if c.says == "" {
				require.NoError(t, err)
				s.Close()
				return
			}
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), canary)
		})
	}
}

func TestWaysThatAreNotSecure(t *testing.T) {
	t.Parallel()
	for text, secure := range map[string]bool{
		"postgres://u@db.example/e":                                           false,
		"postgres://u@db.example/e?sslmode=disable":                           false,
		"postgres://u@db.example/e?sslmode=require":                           false,
		"postgres://u@db.example/e?sslmode=verify-ca":                         false,
		"postgres://u@db.example/e?sslmode=verify-full":                       true,
		"postgres://u@127.0.0.1,db.example/e":                                 false,
		"postgres://u@127.0.0.1/e":                                            true,
		"postgres://u@[::1]/e?sslmode=disable":                                true,
		"postgres://u@localhost/e":                                            true,
		"postgres:///e?host=/var/run/postgresql":                              true,
		"host=db.example dbname=e":                                            false,
		"host=db.example dbname=e sslmode=verify-full":                        true,
		"postgres://u@a.example,b.example/e?sslmode=verify-full":              true,
		"postgres://u@db.example/e?sslmode=verify-full&sslrootcert=/none":     true, // Open says what is wrong
		"postgres://u@db.example/e?sslmode=verify-full&sslnegotiation=direct": true,
	} {
		err := pg.CheckLink(text)
		if secure {
			require.NoError(t, err, text)
		} else {
			require.ErrorIs(t, err, pg.ErrInsecure, text)
			require.ErrorContains(t, err, "sslmode=verify-full", text)
		}
	}
}
