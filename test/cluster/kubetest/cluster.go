package kubetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/ports"
)

// Options say what a cluster has apart from RBAC, the default admission and KubeVirt's kinds.
type Options struct {
	AuditPolicy  string   // text of the policy; empty: nothing is audited
	AuditWebhook string   // text of the kubeconfig of who is sent audit events; empty: they only go to the log
	Flags        []string // more flags of the kube-apiserver, which win over ours
	Kinds        string   // manifest of KubeVirt's kinds; empty: KubeVirtKinds
}

// Cluster is a control plane.
type Cluster struct {
	CA *Authority // signs the certificates of the API server, and of others that a test needs

	t      TB
	dir    string
	etcd   string // its URL
	peer   string // the URL at which etcd would hear other members
	addr   string // of the API server
	flags  []string
	kinds  string
	store  *Process // the etcd that runs now
	server *Process // the API server that runs now
}

// ready bounds how long etcd or the API server may take to start, on a machine that does other things as well.
const ready = 2 * time.Minute

// Start starts a control plane with KubeVirt's kinds. It ends with the test.
func Start(tb TB, o Options) *Cluster {
	tb.Helper()
	c := &Cluster{t: tb, dir: tb.TempDir(), etcd: "http://" + ports.Free(tb), peer: "http://" + ports.Free(tb), addr: ports.Free(tb)}
	c.kinds = cmp.Or(o.Kinds, KubeVirtKinds())
	if err := c.prepareAPIServer(o); err != nil {
		tb.Fatalf("prepare a control plane: %v", err)
	}
	c.startEtcd()
	c.StartServer()
	c.Apply(c.kinds)
	c.awaitKinds()
	return c
}

// prepareAPIServer writes the files of the API server and puts its flags together.
func (c *Cluster) prepareAPIServer(o Options) (err error) {
	if c.CA, err = NewAuthority("kubetest-ca"); err != nil {
		return err
	}
	server, err := c.CA.Server("kubernetes.default.svc")
	if err != nil {
		return err
	}
	proxy, err := c.CA.Client("front-proxy-client")
	if err != nil {
		return err
	}
	private, public, err := signingKey()
	if err != nil {
		return err
	}
	file := func(name string, text []byte) string {
		path := filepath.Join(c.dir, name)
		err = errors.Join(err, os.WriteFile(path, text, 0o600))
		return path
	}
	ca := file("ca.crt", c.CA.PEM)
	host, port, _ := net.SplitHostPort(c.addr)
	c.flags = []string{
		"--etcd-servers=" + c.etcd, "--bind-address=" + host, "--secure-port=" + port,
		"--advertise-address=10.0.0.1", "--endpoint-reconciler-type=none", // it takes no loopback address, and with none it needs none
		"--tls-cert-file=" + file("server.crt", server.Cert), "--tls-private-key-file=" + file("server.key", server.Key), "--client-ca-file=" + ca,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + file("sa.pub", public), "--service-account-signing-key-file=" + file("sa.key", private),
		"--requestheader-client-ca-file=" + ca, "--requestheader-allowed-names=front-proxy-client", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + file("proxy.crt", proxy.Cert), "--proxy-client-key-file=" + file("proxy.key", proxy.Key),
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true", "--event-ttl=6h", "--profiling=false",
	}
	if o.AuditPolicy != "" {
		c.flags = append(c.flags, "--audit-policy-file="+file("audit-policy.yaml", []byte(o.AuditPolicy)), "--audit-log-path="+c.AuditFile(), "--audit-log-maxsize=0")
	}
	if o.AuditWebhook != "" {
		c.flags = append(c.flags, "--audit-webhook-config-file="+file("audit-webhook.yaml", []byte(o.AuditWebhook)))
	}
	c.flags = append(c.flags, o.Flags...)
	return err
}

// buildProgram builds a program where it is not built yet, and returns its path.
func (c *Cluster) buildProgram(p build.Program) string {
	c.t.Helper()
	path, err := p.Build()
	if err != nil {
		c.t.Fatal(err)
	}
	return path
}

func (c *Cluster) startEtcd() {
	c.t.Helper()
	c.store = StartProcess(c.t, filepath.Join(c.dir, "etcd.log"), c.buildProgram(build.Etcd()), "--name=e", "--data-dir="+c.dataDir(),
		"--listen-client-urls="+c.etcd, "--advertise-client-urls="+c.etcd, "--listen-peer-urls="+c.peer, "--initial-advertise-peer-urls="+c.peer,
		"--initial-cluster=e="+c.peer, "--unsafe-no-fsync", "--log-level=warn")
	c.retryUntilReady("etcd", c.store, func(ctx context.Context) error { return checkURL(ctx, http.DefaultClient, c.etcd+"/health") })
}

// StartServer starts the API server, after KillServer once more, at the same address, and waits until it is ready.
func (c *Cluster) StartServer() {
	c.t.Helper()
	c.server = StartProcess(c.t, filepath.Join(c.dir, "kube-apiserver.log"), c.buildProgram(build.APIServer()), c.flags...)
	client, err := rest.HTTPClientFor(c.Admin())
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	c.retryUntilReady("kube-apiserver", c.server, func(ctx context.Context) error { return checkURL(ctx, client, "https://"+c.addr+"/readyz") })
}

// KillServer ends the API server as a crash does: every watch breaks. What it had stored stays.
func (c *Cluster) KillServer() { c.server.Kill() }

// retryUntilReady tries until it succeeds or the program ends.
func (c *Cluster) retryUntilReady(what string, p *Process, try func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), ready)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-p.Ended():
			c.t.Fatalf("%s ended: %v\n%s", what, p.err, p.outputTail())
		case <-ctx.Done():
			c.t.Fatalf("%s is not ready: %v\n%s", what, err, p.outputTail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func checkURL(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		return fmt.Errorf("%s: %s\n%s", url, answer.Status, text)
	}
	return nil
}

// Revision returns how many changes etcd has seen.
func (c *Cluster) Revision() int64 {
	c.t.Helper()
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	c.callEtcd("range", map[string]any{"key": "AA=="}, &now)
	revision, err := strconv.ParseInt(now.Header.Revision, 10, 64)
	if err != nil {
		c.t.Fatalf("read the revision of etcd: %v", err)
	}
	return revision
}

// Compact makes etcd forget the history up to now: no watch can resume from before.
func (c *Cluster) Compact() {
	c.t.Helper()
	c.callEtcd("compaction", map[string]any{"revision": c.Revision(), "physical": true}, &struct{}{})
}

// RewriteStored changes an object as etcd has it, past the API server: for times that an API server takes from its own clock. It must be stored as JSON.
func (c *Cluster) RewriteStored(key string, change func(object map[string]any)) {
	c.t.Helper()
	var found struct {
		Kvs []struct {
			Key, Value []byte
		} `json:"kvs"`
	}
	c.callEtcd("range", map[string]any{"key": []byte(key)}, &found)
	if len(found.Kvs) != 1 {
		c.t.Fatalf("etcd has %d objects %s", len(found.Kvs), key)
	}
	var object map[string]any
	if err := json.Unmarshal(found.Kvs[0].Value, &object); err != nil {
		c.t.Fatalf("read %s of etcd: %v", key, err)
	}
	change(object)
	text, err := json.Marshal(object)
	if err != nil {
		c.t.Fatal(err)
	}
	c.callEtcd("put", map[string]any{"key": []byte(key), "value": text}, &struct{}{})
}

// callEtcd asks etcd, by JSON.
func (c *Cluster) callEtcd(what string, body, into any) {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.etcd+"/v3/kv/"+what, bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatalf("ask etcd: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("ask etcd for %s: %s: %s: %v", what, answer.Status, raw, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		c.t.Fatalf("ask etcd for %s: %v", what, err)
	}
}

// AuditFile names the log of audit events.
func (c *Cluster) AuditFile() string { return filepath.Join(c.dir, "audit.log") }

// AuditLog returns the audit events that were logged so far, one a line.
func (c *Cluster) AuditLog() []byte {
	c.t.Helper()
	text, err := os.ReadFile(c.AuditFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	return text
}
