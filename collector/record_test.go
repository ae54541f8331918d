package collector

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestKeepIsWhatIsRead compares what is read of each recorded object with what is read of what a recording keeps of it.
func TestKeepIsWhatIsRead(t *testing.T) {
	t.Parallel()
	redactor := NewRedactor()
	for _, name := range []string{"b-dual-retry-loop", "c-node-drain", "e-user-migrations", "p-dual-retry-loop-v1.9"} {
		rec, err := recording.Open(evictrail.Recordings(), name, nil)
		require.NoError(t, err)
		for _, l := range rec.Lines {
			r, watched := findResource(l.Resource)
			if !watched || l.Object == nil || l.Kind == recording.KindBookmark {
				continue
			}
			v, err := shapeOfObject(r.slim()).pruneJSON(l.Object)
			require.NoError(t, err)
			kept, err := json.Marshal(v)
			require.NoError(t, err)
			require.Less(t, len(kept), len(l.Object))
			want, got := r.decodeJSON(l.Object), r.decodeJSON(kept)
			require.NoError(t, got.err)
			require.Equal(t, want.observe(tracker.Seen{}), got.observe(tracker.Seen{}), "%s:%d", name, l.Number)
			hidden, err := json.Marshal(redactor.Value(v))
			require.NoError(t, err)
			require.NoError(t, r.decodeJSON(hidden).err, "%s:%d", name, l.Number)
		}
	}
}

// TestRecordedTextsAreClipped: what a recording keeps of an object is bounded, and is read as the object is.
func TestRecordedTextsAreClipped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	r, watched := findResource("events")
	require.True(t, watched)
	raw := []byte(`{"metadata":{"name":"e","namespace":"shop","uid":"u","resourceVersion":"1"},"involvedObject":{"kind":"VirtualMachineInstance","name":"db"},"reason":"FailedMigration","message":"` + long + `"}`)
	v, err := shapeOfObject(r.slim()).pruneJSON(raw)
	require.NoError(t, err)
	kept, err := json.Marshal(v)
	require.NoError(t, err)
	require.Less(t, len(kept), 2*maxText)
	require.Equal(t, r.decodeJSON(raw).observe(tracker.Seen{}), r.decodeJSON(kept).observe(tracker.Seen{}))

	list, err := shapeOfObject(new(slimNode)).pruneJSON([]byte(`{"spec":{"taints":[` + strings.Repeat(`{"key":"k"},`, 100_000) + `{"key":"k"}]}}`))
	require.NoError(t, err)
	require.Len(t, list.(map[string]any)["spec"].(map[string]any)["taints"], maxItems)

	event := slimAudit{UserAgent: long, RequestObject: json.RawMessage(`{"metadata":{"annotations":{"` + annotationReason + `":"` + long + `"}}}`)}
	v, err = event.pruneEvent()
	require.NoError(t, err)
	kept, err = json.Marshal(v)
	require.NoError(t, err)
	require.Less(t, len(kept), 4*maxText)
	require.Contains(t, string(kept), annotationReason)
}

// memoryTape keeps what it is given.
type memoryTape struct {
	mu    sync.Mutex
	lines []string
	fail  error
}

func (m *memoryTape) addLine(parts ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, strings.Join(parts, " "))
}

func (m *memoryTape) List(resource, version string, items []json.RawMessage) {
	m.addLine("list", resource, version)
	for _, item := range items {
		m.addLine("item", resource, string(item))
	}
}

func (m *memoryTape) Event(resource string, kind watch.EventType, object json.RawMessage) {
	m.addLine(string(kind), resource, string(object))
}
func (m *memoryTape) ListFailed(resource string) { m.addLine("list failed", resource) }
func (m *memoryTape) WatchEnded(resource string, failed bool) {
	m.addLine(map[bool]string{false: "watch closed", true: "watch failed"}[failed], resource)
}
func (m *memoryTape) Audit(event json.RawMessage) { m.addLine("audit", string(event)) }
func (m *memoryTape) Scrape(text string)          { m.addLine("scrape", text) }
func (m *memoryTape) Policy(text []byte) (bool, error) {
	m.addLine("policy", string(text))
	return true, nil
}
func (m *memoryTape) Flush() error { return m.fail }

// findLines returns the lines about a resource.
func (m *memoryTape) findLines(resource string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, l := range m.lines {
		if strings.Contains(l, " "+resource) {
			out = append(out, l)
		}
	}
	return out
}

func (m *memoryTape) joinLines() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.lines, "\n")
}

// startRecorder records an API until the test ends.
func startRecorder(t *testing.T, a *api, config RecorderConfig) (*Recorder, *memoryTape) {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.CloseClientConnections)
	tape := &memoryTape{}
	config.REST, config.Tape, config.Log, config.Clock = &rest.Config{Host: server.URL}, tape, cmp.Or(config.Log, slog.New(slog.DiscardHandler)), func() time.Time { return time.Now().UTC() }
	config.Backoff = &wait.Backoff{Duration: 5 * time.Millisecond, Factor: 1, Steps: 1}
	r, err := NewRecorder(config)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return r, tape
}

// secret stands wherever something secret may stand.
const secret = "s3cr3t-Value"

// TestRecorderWritesNoSecrets records objects that have a secret in each place that evictrail does not read.
func TestRecorderWritesNoSecrets(t *testing.T) {
	t.Parallel()
	a := newAPI()
	meta := `"metadata":{"name":"NAME","namespace":"shop","uid":"u-NAME","resourceVersion":"7","creationTimestamp":"2026-11-21T00:00:00Z",
		"labels":{"app":"` + secret + `"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + secret + `","note":"` + secret + `"},
		"managedFields":[{"manager":"` + secret + `"}],"generateName":"` + secret + `"}`
	object := func(name, rest string) string { return "{" + strings.ReplaceAll(meta, "NAME", name) + "," + rest + "}" }
	a.setAnswer("virtualmachineinstances", 0, object("db", `"spec":{"evictionStrategy":"LiveMigrate",
		"accessCredentials":[{"sshPublicKey":{"source":{"secret":{"secretName":"`+secret+`"}}}}],
		"volumes":[{"name":"c","cloudInitNoCloud":{"userData":"`+secret+`","userDataBase64":"`+secret+`","networkData":"`+secret+`"}},{"sysprep":{"secret":{"name":"`+secret+`"}}}],
		"domain":{"firmware":{"serial":"`+secret+`"},"devices":{"disks":[{"serial":"`+secret+`"}]}}},
		"status":{"phase":"Running","guestOSInfo":{"name":"`+secret+`"},"interfaces":[{"ipAddress":"`+secret+`"}]}`))
	a.setAnswer("pods", 0, object("virt-launcher-db-x", `"spec":{"nodeName":"n1","containers":[{"env":[{"name":"PASSWORD","value":"`+secret+`"}],"args":["`+secret+`"],"command":["`+secret+`"]}],
		"imagePullSecrets":[{"name":"`+secret+`"}]},"status":{"phase":"Running","podIP":"`+secret+`"}`))
	a.setAnswer("nodes", 0, object("n1", `"spec":{"unschedulable":false,"providerID":"`+secret+`"},"status":{"addresses":[{"address":"`+secret+`"}],"images":[{"names":["`+secret+`"]}]}`))
	a.setAnswer("kubevirts", 0, object("kubevirt", `"spec":{"configuration":{"evictionStrategy":"LiveMigrate","webhookConfiguration":{"x":"`+secret+`"}},"customizeComponents":{"patches":["`+secret+`"]}},
		"status":{"observedKubeVirtVersion":"v1.8.4","conditions":[{"message":"`+secret+`"}]}`))
	a.setAnswer("virtualmachineinstancemigrations", 0, object("m1", `"spec":{"vmiName":"db"},"status":{"phase":"Running","migrationState":{"targetNodeAddress":"`+secret+`","targetCPUSet":["`+secret+`"]}}`))
	a.setAnswer("migrationpolicies", 0, object("slow-guests", `"spec":{"selectors":{"virtualMachineInstanceSelector":{"speed":"slow"}},"allowPostCopy":true,"other":"`+secret+`"},"status":{"x":"`+secret+`"}`))
	target := `"target":{"pod":{"name":"virt-launcher-db-x","uid":"p1"},"other":"` + secret + `"}`
	a.setAnswer("evictionrequests", 0,
		object("r1", `"spec":{`+target+`,"requester":"acme.io/upgrade","intent":"Eviction"},"status":{"observedGeneration":1}`),
		object("r2", `"spec":{"target":{"pod":{"name":"`+secret+`"}},"requester":"`+secret+`","intent":"Eviction"}`))
	a.setAnswer("evictions", 0, object("v1", `"spec":{`+target+`},"status":{"responders":[{"name":"storage.io/flush","other":"`+secret+`"}]}`))
	a.setAnswer("events", 0,
		object("e1", `"involvedObject":{"kind":"Secret","name":"tls","namespace":"shop"},"reason":"Issued","message":"`+secret+`"`),
		object("e2", `"involvedObject":{"kind":"Pod","name":"web-1","namespace":"shop"},"reason":"BackOff","message":"`+secret+`"`),
		object("e3", `"involvedObject":{"kind":"VirtualMachineInstance","name":"db","namespace":"shop"},"reason":"Migrated","message":"moved"`))
	log := filepath.Join(t.TempDir(), "audit.log")
	at := time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano)
	require.NoError(t, os.WriteFile(log, []byte(strings.ReplaceAll(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"a-1","stage":"ResponseComplete","requestURI":"/x","verb":"create",
		"user":{"username":"alice","uid":"`+secret+`","groups":["devs"],"extra":{"token":["`+secret+`"]}},"sourceIPs":["`+secret+`"],"userAgent":"kubectl/v1",
		"objectRef":{"resource":"pods","namespace":"shop","name":"virt-launcher-db-x","subresource":"eviction"},"responseObject":{"x":"`+secret+`"},
		"responseStatus":{"code":429,"message":"no","metadata":{"x":"`+secret+`"}},
		"requestObject":{"metadata":{"annotations":{"reason":"balance","note":"`+secret+`"},"labels":{"x":"`+secret+`"}},"spec":{"volumes":"`+secret+`"}},
		"requestReceivedTimestamp":"`+at+`","stageTimestamp":"`+at+`","annotations":{"authorization.k8s.io/reason":"`+secret+`","other":"`+secret+`"}}`, "\n", "")+"\n"), 0o600))
	r, tape := startRecorder(t, a, RecorderConfig{AuditFile: log})
	require.NoError(t, r.PolicyText([]byte("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmetricsProviders: [{prometheus: {authToken: {secretReference: {name: "+secret+"}}}}]\n"+
		"profiles: [{name: p, pluginConfig: [{name: KubevirtMigrationAware, args: {migrationCooldown: 30s, namespaces: {include: ["+secret+"]}}}]}]\n")))
	for _, w := range resources {
		require.Eventually(t, func() bool { return len(tape.findLines(w.name)) > 1 }, 2*time.Minute, 5*time.Millisecond, w.name)
	}
	require.Eventually(t, func() bool { return strings.Contains(tape.joinLines(), `"balance"`) }, 2*time.Minute, 5*time.Millisecond)
	require.Empty(t, r.Problems())
	objects, unreadable := r.Seen()
	require.Equal(t, 9, objects)
	require.Zero(t, unreadable)
	require.NotContains(t, tape.joinLines(), secret)
	require.Contains(t, tape.joinLines(), "migrationCooldown: 30s")
	require.Contains(t, tape.joinLines(), `"moved"`)
}

// TestRecorderReportsBreaks ends watches and forgets their history: what happened stands between the lines.
func TestRecorderReportsBreaks(t *testing.T) {
	t.Parallel()
	a := newAPI()
	node := func(version string) string {
		return `{"metadata":{"name":"n1","uid":"u1","resourceVersion":"` + version + `"},"spec":{}}`
	}
	a.setAnswer("nodes", 0, node("7"))
	a.setAnswer("pods", 403)
	r, tape := startRecorder(t, a, RecorderConfig{})
	ended := func(lines int) []string {
		require.Eventually(t, func() bool { return len(tape.findLines("nodes")) >= lines }, 2*time.Minute, 5*time.Millisecond)
		return tape.findLines("nodes")
	}
	require.Len(t, ended(2), 2)
	require.Eventually(t, func() bool {
		p := r.Problems()
		return len(p) == 1 && strings.Contains(p[0], "no right to watch pods: grant list and watch on pods")
	}, 10*time.Second, 5*time.Millisecond)
	require.Empty(t, tape.findLines("pods"))

	a.streams["nodes"] <- `{"type":"MODIFIED","object":` + node("101") + `}`
	a.streams["nodes"] <- `{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"102"}}}`
	a.streams["nodes"] <- `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","message":"too old","code":410}}`
	lines := ended(7)
	require.Equal(t, []string{
		"list nodes 100", `item nodes ` + node("7"), `MODIFIED nodes ` + node("101"), `BOOKMARK nodes {"metadata":{"resourceVersion":"102"}}`,
		"watch failed nodes", "list nodes 100", `item nodes ` + node("7"),
	}, normalizeLines(lines))
}

// normalizeLines writes the objects of lines with their fields in order.
func normalizeLines(lines []string) []string {
	return slices.Collect(func(yield func(string) bool) {
		for _, l := range lines {
			l = strings.NewReplacer(`{"metadata":{"name":"n1","resourceVersion":"`, `{"metadata":{"name":"n1","uid":"u1","resourceVersion":"`, `","uid":"u1"}`, `"}`).Replace(l)
			if !yield(l) {
				return
			}
		}
	})
}

// TestRecorderEndsWithItsTape ends when nothing can be written any more.
func TestRecorderEndsWithItsTape(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newAPI())
	t.Cleanup(server.CloseClientConnections)
	r, err := NewRecorder(RecorderConfig{
		REST: &rest.Config{Host: server.URL}, Tape: &memoryTape{fail: os.ErrPermission}, Log: slog.New(slog.DiscardHandler), Clock: time.Now,
	})
	require.NoError(t, err)
	require.ErrorIs(t, r.Run(t.Context()), os.ErrPermission)
}

// pseudonym is what stands for a name.
const (
	syllables = `[bdfghjklmnprstvz][aiou][bdfghjklmnprstvz][aiou][bdfghjklmnprstvz]`
	pseudonym = syllables + "-" + syllables + "-" + syllables
)

func TestRedactedTexts(t *testing.T) {
	t.Parallel()
	r := NewRedactor()
	for text, want := range map[string]string{
		`Created Migration kubevirt-evacuation-8lvmh`: `Created Migration kubevirt-evacuation-P`,
		`admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction triggered evacuation of VMI "shop/db-1"`: `admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction triggered evacuation of VMI "P/P"`,
		`VMI db-local is configured with an eviction strategy but is not live-migratable`:                                                         `VMI P is configured with an eviction strategy but is not live-migratable`,
		`Migration Target is listening at 192.168.10.102, on ports: 45693,35125,39623`:                                                            `Migration Target is listening at P, on ports: 45693,35125,39623`,
		`The VirtualMachineInstance migrated to node worker-2.example.com.`:                                                                       `The VirtualMachineInstance migrated to node P.`,
		`dial tcp [fe80::1c2:3]:49152: connection reset by peer`:                                                                                  `dial tcp [P]:49152: connection reset by peer`,
		`virError(Code=38, Domain=7, Message='End of file while reading data: Input/output error')`:                                               `virError(Code=38, Domain=7, Message='End of file while reading data: Input/output error')`,
		`Live migration failed error encountered during MigrateToURI3 libvirt api call`:                                                           `Live migration failed error encountered during MigrateToURI3 libvirt api call`,
		`Failed to get "write" lock`:                                                                           `Failed to get "write" lock`,
		`backoff migrating vmi shop/test`:                                                                      `backoff migrating vmi P/P`,
		`virtualmachineinstancemigrations.kubevirt.io "test" not found`:                                        `virtualmachineinstancemigrations.kubevirt.io "P" not found`,
		`User "system:serviceaccount:team-a:robot" cannot create`:                                              `User "system:serviceaccount:P:P" cannot create`,
		`triggered by KubeVirtRelieveAndMigrate/LowNodeUtilization: `:                                          `triggered by KubeVirtRelieveAndMigrate/LowNodeUtilization: `,
		`triggered by AcmeGold/LowNodeUtilization: `:                                                           `triggered by P/LowNodeUtilization: `,
		`corresponding condition of pod readiness gate "kubevirt.io/virtual-machine-unpaused" does not exist.`: `corresponding condition of pod readiness gate "kubevirt.io/virtual-machine-unpaused" does not exist.`,
		`2026-11-21T00:32:53.01Z 15m 320s 2Gi v1.8.4 38 DisksNotLiveMigratable`:                                `2026-11-21T00:32:53.01Z 15m 320s 2Gi v1.8.4 38 DisksNotLiveMigratable`,
		`call +49 170 1234567 or mail ann@example.com`:                                                         `call +49 170 P or P P`,
	} {
		got := regexp.MustCompile(pseudonym).ReplaceAllString(r.Text(text), "P")
		require.Equal(t, want, got, text)
	}
	require.Contains(t, r.Text(`evacuation of VMI "shop/db-1"`), `"`+r.Name("shop")+"/"+r.Name("db-1")+`"`, "a name has one pseudonym, wherever it stands")
	require.NotEqual(t, r.Name("db-1"), NewRedactor().Name("db-1"), "and another in another recording")
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, r.Name("7E6998F2-0540-4a00-915f-bce7a4a5e705"))
}

// TestRedactedUsers hides who they are and leaves what sort of program they are.
func TestRedactedUsers(t *testing.T) {
	t.Parallel()
	r := NewRedactor()
	for user, want := range map[string]string{
		"alice@example.com": "P",
		"system:serviceaccount:openshift-kube-descheduler-operator:openshift-descheduler": "system:serviceaccount:openshift-kube-descheduler-operator:openshift-descheduler",
		"system:serviceaccount:team-a:my-descheduler":                                     "system:serviceaccount:P:P",
		"system:serviceaccount:virt:kubevirt-controller":                                  "system:serviceaccount:P:kubevirt-controller",
		"system:serviceaccount:team-a:robot":                                              "system:serviceaccount:P:P",
		"system:serviceaccount:kube-system:node-controller":                               "system:serviceaccount:kube-system:node-controller",
		"system:serviceaccount:capk-system:capk-manager":                                  "system:serviceaccount:capk-system:capk-manager",
		"system:node:worker-1":                                                            "system:node:P",
		"system:kube-scheduler":                                                           "system:kube-scheduler",
		"system:serviceaccounts:team-a":                                                   "system:serviceaccounts:P",
	} {
		require.Equal(t, want, regexp.MustCompile(pseudonym).ReplaceAllString(r.redactUser(user), "P"), user)
	}
}

// TestRedactorShowsNoName puts random names where names stand.
func TestRedactorShowsNoName(t *testing.T) {
	t.Parallel()
	r := NewRedactor()
	letters := "abcdefghijklmnopqrstuvwxyz0123456789-"
	require.NoError(t, quick.Check(func(seed []byte) bool {
		if len(seed) < 6 {
			return true
		}
		name := "q"
		for _, b := range seed {
			name += string(letters[int(b)%len(letters)])
		}
		name += "q"
		out, err := json.Marshal(r.Value(map[string]any{
			"name": name, "labels": map[string]any{name: name}, "message": "pod " + name + ", node \"" + name + "\" of " + name + "/" + name + ": " + name,
			"username": name, "nodeName": name, "addedNodeSelector": map[string]any{name: name}, "taints": []any{map[string]any{"key": name, "value": name}},
		}))
		labels := strings.Count(string(out), `"labels":{"`+name+`":`) // the names of fields are those of the slim types: none is anybody's
		return err == nil && strings.Count(string(out), name) == labels
	}, nil))
}
