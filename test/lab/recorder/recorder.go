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
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/deploy"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/ports"
)

// Cluster is the name under which the cluster of the lab is recorded.
const Cluster = "lab"

// ready bounds how long evictrail may take to be ready, on a machine that runs a whole control plane beside it.
const ready = 2 * time.Minute

// Recorder is evictrail, of one replica or more, with its Postgres.
type Recorder struct {
	t        kubetest.TB
	dir      string
	program  string
	ca       *kubetest.Authority
	secret   string // by which the API server is known to the observer
	token    string // file with the token by which it is known to the audit webhook
	client   *http.Client
	replicas []*replica // the API server sends to the first

	database *embedded.Server
}

// replica is one of the processes that record the cluster.
type replica struct {
	name    string
	address string // of the pages
	reviews string // of the observer
	args    []string
	process *kubetest.Process
}

// Prepare chooses addresses and makes certificates and secrets for that many replicas. The folder, of which the parent is the lab's own, holds all
// that evictrail writes.
func Prepare(tb kubetest.TB, dir string, replicas int) *Recorder {
	tb.Helper()
	r := &Recorder{t: tb, dir: dir, secret: strings.ToLower(rand.Text())}
	for i := range replicas {
		name := "evictrail"
		if i > 0 {
			name += fmt.Sprintf("-%d", i+1)
		}
		r.replicas = append(r.replicas, &replica{name: name, address: ports.Free(tb), reviews: ports.Free(tb)})
	}
	if err := r.prepare(); err != nil {
		tb.Fatalf("prepare evictrail: %v", err)
	}
	return r
}

func (r *Recorder) prepare() (err error) {
	r.t.Logf("building evictrail")
	if r.program, err = build.Evictrail(); err != nil {
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
	for path, text := range map[string]string{r.token: "of-the-api-server\n", secret: r.secret + "\n", r.CAFile(): string(r.ca.PEM)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.ca.PEM)
	r.client = &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, DisableKeepAlives: true}, Timeout: 30 * time.Second,
	}
	for _, one := range r.replicas {
		one.args = []string{
			"run", "--cluster", Cluster, "--listen", one.address, "--tls-cert-file", cert, "--tls-key-file", key, "--audit-token-file", r.token,
			"--eviction-observer", "--admission-listen", one.reviews, "--admission-secret-file", secret, "--spool-dir", filepath.Join(r.dir, "spool-"+one.name),
			"--replica", one.name,
		}
		if len(r.replicas) > 1 {
			one.args = append(one.args, "--leader-elect", "--leader-lease", lease)
		}
	}
	return nil
}

// lease is that of the replicas; evictrail's role names it.
const lease = "evictrail/evictrail"

// CAFile is the path of the authority of evictrail's certificates.
func (r *Recorder) CAFile() string { return filepath.Join(r.dir, "ca.crt") }

// Addresses are those of all replicas.
func (r *Recorder) Addresses() (addresses []string) {
	for _, one := range r.replicas {
		addresses = append(addresses, one.address)
	}
	return addresses
}

// findReplica returns the replica of a name.
func (r *Recorder) findReplica(name string) (*replica, error) {
	i := slices.IndexFunc(r.replicas, func(one *replica) bool { return one.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no replica %q of evictrail: the scenario has %d", name, len(r.replicas))
	}
	return r.replicas[i], nil
}

// renderManifest generates one of evictrail's manifests.
func (r *Recorder) renderManifest(name string) string {
	r.t.Helper()
	o := deploy.DefaultOptions()
	o.URL, o.ObserverURL, o.Secret, o.CA = r.URL(), "https://"+r.replicas[0].reviews, r.secret, r.ca.PEM
	text, err := deploy.YAML(name, o)
	if err != nil {
		r.t.Fatalf("generate the manifest %s: %v", name, err)
	}
	return text
}

// AuditPolicy is the text of the file for --audit-policy-file of the API server.
func (r *Recorder) AuditPolicy() string { return r.renderManifest(deploy.AuditPolicy) }

// AuditWebhook is the text of the file for --audit-webhook-config-file of the API server.
func (r *Recorder) AuditWebhook() string {
	const installed = "/etc/kubernetes/evictrail/token" // as generated for a control plane
	return strings.Replace(r.renderManifest(deploy.AuditWebhook), installed, r.token, 1)
}

// Observer is the manifest by which the API server shows evictions to evictrail.
func (r *Recorder) Observer() string { return r.renderManifest(deploy.Observer) }

// Start starts Postgres, and all replicas with the rights of a kubeconfig and more flags. It returns when they are ready. The last replica is started
// first, and so derives.
func (r *Recorder) Start(kubeconfig string, flags ...string) error {
	if err := r.StartDatabase(); err != nil {
		return err
	}
	r.t.Cleanup(func() { _ = r.database.Stop(context.Background()) })
	for _, one := range slices.Backward(r.replicas) {
		one.args = append(one.args, append([]string{"--kubeconfig", kubeconfig}, flags...)...)
		if err := r.Resume(one.name); err != nil {
			return err
		}
	}
	return nil
}

// Resume starts a replica, once more after Kill, and returns when it is ready.
func (r *Recorder) Resume(name string) error {
	one, err := r.findReplica(name)
	if err != nil {
		return err
	}
	log := filepath.Join(r.dir, name+".log")
	one.process = kubetest.StartProcess(r.t, log, r.program, append(slices.Clone(one.args), "--database-url", r.DatabaseURL())...)
	return r.awaitProcess(one.process, func() error {
		answer, err := r.getFrom(r.t.Context(), one, "/readyz")
		if err == nil && strings.HasPrefix(answer, "ok") {
			return nil
		}
		return errors.Join(fmt.Errorf("%s is not ready, see %s: %s", name, log, answer), err)
	})
}

// awaitProcess waits until nothing is missing any more of what a process is to do. The error says what is missing when it has ended, or when ready is over.
func (r *Recorder) awaitProcess(p *kubetest.Process, missing func() error) error {
	for deadline := time.Now().Add(ready); ; {
		err := missing()
		if err == nil || !p.Running() || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.t.Context().Done():
			return context.Cause(r.t.Context())
		}
	}
}

// Kill ends a replica as a crash does.
func (r *Recorder) Kill(name string) error {
	one, err := r.findReplica(name)
	if err == nil {
		one.process.Kill()
	}
	return err
}

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

// URL is that of the first replica's pages. Their certificate is of the lab's own CA.
func (r *Recorder) URL() string { return "https://" + r.replicas[0].address }
