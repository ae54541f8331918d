package recorder

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/evictrail/evictrail/deploy"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

// Cluster is the name under which the cluster of the lab is recorded.
const Cluster = "lab"

// ready bounds how long evictrail may take to be ready, on a machine that runs a whole control plane beside it.
const ready = 2 * time.Minute

// Recorder is evictrail with its Postgres.
type Recorder struct {
	t       kubetest.TB
	dir     string
	program string
	args    []string
	address string // of the pages
	reviews string // of the observer
	ca      *kubetest.Authority
	secret  string // by which the API server is known to the observer
	token   string // file with the token by which it is known to the audit webhook
	client  *http.Client

	database *embedded.Server
	process  *kubetest.Process
}

// Prepare chooses addresses and makes certificates and secrets. The folder, of which the parent is the lab's own, holds all that evictrail writes.
func Prepare(tb kubetest.TB, dir string) *Recorder {
	tb.Helper()
	r := &Recorder{t: tb, dir: dir, address: ports.Free(tb), reviews: ports.Free(tb), secret: strings.ToLower(rand.Text())}
	if err := r.prepare(); err != nil {
		tb.Fatalf("prepare evictrail: %v", err)
	}
	return r
}

func (r *Recorder) prepare() (err error) {
	if r.program, err = kubetest.Evictrail(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o750); err != nil {
		return err
	}
	if os.Geteuid() == 0 { // Postgres refuses to run as root: its user must reach its folder
		if err := errors.Join(os.Chmod(r.dir, 0o711), os.Chmod(filepath.Dir(r.dir), 0o711)); err != nil {
			return err
		}
	}
	if r.ca, err = kubetest.NewAuthority("lab-evictrail-ca"); err != nil {
		return err
	}
	server, err := r.ca.Server("evictrail")
	if err != nil {
		return err
	}
	cert, key, err := server.Write(r.dir, "tls")
	if err != nil {
		return err
	}
	r.token = filepath.Join(r.dir, "audit-token")
	secret := filepath.Join(r.dir, "admission-secret")
	for path, text := range map[string]string{r.token: "of-the-api-server\n", secret: r.secret + "\n", filepath.Join(r.dir, "ca.crt"): string(r.ca.PEM)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.ca.PEM)
	r.client = &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}, Timeout: 30 * time.Second,
	}
	r.args = []string{
		"run", "--cluster", Cluster, "--listen", r.address, "--tls-cert-file", cert, "--tls-key-file", key, "--audit-token-file", r.token,
		"--eviction-observer", "--admission-listen", r.reviews, "--admission-secret-file", secret, "--spool-dir", filepath.Join(r.dir, "spool"),
	}
	return nil
}

// manifest generates one of evictrail's manifests.
func (r *Recorder) manifest(name string) string {
	r.t.Helper()
	o := deploy.DefaultOptions()
	o.URL, o.ObserverURL, o.Secret, o.CA = r.URL(), "https://"+r.reviews, r.secret, r.ca.PEM
	text, err := deploy.YAML(name, o)
	if err != nil {
		r.t.Fatalf("generate the manifest %s: %v", name, err)
	}
	return text
}

// AuditPolicy is the text of the file for --audit-policy-file of the API server.
func (r *Recorder) AuditPolicy() string { return r.manifest(deploy.AuditPolicy) }

// AuditWebhook is the text of the file for --audit-webhook-config-file of the API server.
func (r *Recorder) AuditWebhook() string {
	const installed = "/etc/kubernetes/evictrail/token" // as generated for a control plane
	return strings.Replace(r.manifest(deploy.AuditWebhook), installed, r.token, 1)
}

// Observer is the manifest by which the API server shows evictions to evictrail.
func (r *Recorder) Observer() string { return r.manifest(deploy.Observer) }

// Start starts Postgres, and evictrail with the rights of a kubeconfig and more flags. It returns when evictrail is ready.
func (r *Recorder) Start(kubeconfig string, flags ...string) error {
	r.args = append(r.args, append([]string{"--kubeconfig", kubeconfig}, flags...)...)
	if err := r.StartDatabase(); err != nil {
		return err
	}
	r.t.Cleanup(func() { _ = r.database.Stop(context.Background()) })
	return r.Resume()
}

// Resume starts evictrail once more after Kill, and returns when it is ready.
func (r *Recorder) Resume() error {
	args := append(append([]string{}, r.args...), "--database-url", r.DatabaseURL())
	r.process = kubetest.StartProcess(r.t, filepath.Join(r.dir, "evictrail.log"), r.program, args...)
	deadline := time.Now().Add(ready)
	for {
		answer, err := r.get(r.t.Context(), "/readyz")
		if err == nil && strings.HasPrefix(answer, "ok") {
			return nil
		}
		if !r.process.Running() || time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("evictrail is not ready, see %s: %s", filepath.Join(r.dir, "evictrail.log"), answer), err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.t.Context().Done():
			return context.Cause(r.t.Context())
		}
	}
}

// Kill ends evictrail as a crash does.
func (r *Recorder) Kill() { r.process.Kill() }

// StartDatabase starts Postgres, or starts it once more.
func (r *Recorder) StartDatabase() (err error) {
	r.database, err = embedded.Start(r.t.Context(), embedded.Options{
		Dir: filepath.Join(r.dir, "postgres"), Logger: slog.New(slog.DiscardHandler), Settings: map[string]string{"fsync": "off"},
	})
	return err
}

// KillDatabase stops Postgres at once: connections break, what was committed stays.
func (r *Recorder) KillDatabase() error { return r.database.Stop(r.t.Context()) }

// DatabaseURL is the URL of evictrail's database.
func (r *Recorder) DatabaseURL() string { return r.database.URL("evictrail") }

// URL is that of the pages. Their certificate is of the lab's own CA.
func (r *Recorder) URL() string { return "https://" + r.address }
