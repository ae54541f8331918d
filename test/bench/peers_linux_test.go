package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/ports"
	"github.com/evictrail/evictrail/trail"
)

// peerRate is how many changes a second come; peerTick is how often a database is asked what it shows.
const (
	peerRate = 200
	peerTick = 5 * time.Millisecond
)

// peers are what watches the same API server, in the order in which they take turns.
var peers = []string{"evictrail", "archive", "kube-state-metrics", "informer"}

// TestPeers has a leader of evictrail, an archive of whole objects, kube-state-metrics and a dynamic informer watch VMIs and migrations over HTTP, each as a
// process of its own, one after the other. First come changes of VMIs one in ten of which says something new: what each costs. Then a process that starts
// again gets changes that all do: how long after a change was due it could be read.
func TestPeers(t *testing.T) { //nolint:paralleltest // what runs beside it would be measured, too
	for _, objects := range listSizes(100) {
		changes := 600 * min(*size, 10)
		costs, fresh := map[string][]peerCost{}, map[string][][]float64{}
		for range *rounds {
			for _, who := range peers {
				costs[who] = append(costs[who], measurePeer(t, who, objects, changes))
				if who != "informer" { // it shows nothing to others
					fresh[who] = append(fresh[who], measureFreshness(t, who, objects, changes/2))
				}
			}
		}
		what := fmt.Sprintf("%d VMIs and migrations, %d changes a second: ", objects, peerRate)
		ours := peers[0]
		for _, by := range []struct {
			what, unit string
			of         func(peerCost) float64
			stores     bool // asked only of what stores
		}{
			{"CPU for a change", "µs", func(c peerCost) float64 { return c.cpu / float64(changes) }, false},
			{"CPU for a change, with that of Postgres", "µs", func(c peerCost) float64 { return (c.cpu + c.postgres) / float64(changes) }, true},
			{"resident", "MB", func(c peerCost) float64 { return c.resident / 1e6 }, false},
			{"resident at most", "MB", func(c peerCost) float64 { return c.most / 1e6 }, false},
			{"stored for a change", "B", func(c peerCost) float64 { return c.stored / float64(changes) }, true},
			{"WAL for a change", "B", func(c peerCost) float64 { return c.wal / float64(changes) }, true},
		} {
			for _, who := range peers[1:] {
				if !by.stores || who == "archive" {
					addRows(row{what + by.what, by.unit, collectFigures(costs[ours], by.of), who, collectFigures(costs[who], by.of)})
				}
			}
		}
		for _, q := range []struct {
			what string
			at   float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			of := func(all []float64) float64 { return computeQuantile(all, q.at) }
			for _, who := range []string{"archive", "kube-state-metrics"} {
				addRows(row{what + "from a change to what can be read, " + q.what, "ms", collectFigures(fresh[ours], of), who, collectFigures(fresh[who], of)})
			}
		}
	}
}

// peerCost is what changes cost: µs of CPU of the process and of Postgres, bytes resident then and at most, bytes by which the database and its WAL grew.
type peerCost struct{ cpu, postgres, resident, most, stored, wal float64 }

func measurePeer(tb testing.TB, who string, objects, changes int) peerCost {
	tb.Helper()
	p := startPeer(tb, who, objects, changes, 10)
	execSQL(tb, p.database, "CHECKPOINT")
	p.waitUntilIdle(tb)
	before := p.measureCost(tb)
	p.deliver(tb)
	p.waitUntilIdle(tb)
	c := p.measureCost(tb)
	c.cpu, c.postgres, c.stored, c.wal = c.cpu-before.cpu, c.postgres-before.postgres, c.stored-before.stored, c.wal-before.wal
	p.stop()
	return c
}

// measureFreshness returns how long after each change was due a reader that asks again and again saw it or a later one, in ms.
func measureFreshness(tb testing.TB, who string, objects, changes int) []float64 {
	tb.Helper()
	p := startPeer(tb, who, objects, changes, 1)
	defer p.stop()
	seen := make([]time.Time, 0, changes)
	close(p.api.begin)
	for len(seen) < changes {
		p.requireRunning(tb)
		newest := p.readNewestVersion(tb) - listVersion
		for at := time.Now(); len(seen) < newest; {
			seen = append(seen, at)
		}
		if p.metrics == "" {
			time.Sleep(peerTick)
		}
	}
	<-p.api.drained
	var out []float64
	for i, at := range seen {
		out = append(out, float64(at.Sub(p.api.dueTime(i+1)).Microseconds())/1000)
	}
	return out
}

// peer is a process that watches an API server.
type peer struct {
	api      *apiServer
	database string     // URL
	reader   *pgx.Conn  // of the database
	newestOf string     // the query for the newest version that can be read; empty where there is none
	metrics  string     // URL; empty where there are none
	process  int        // its ID
	ended    chan error // gets how it ended
	output   *os.File
	stop     func()
}

// startPeer starts a process and returns once it has listed all.
func startPeer(tb testing.TB, who string, objects, changes, telling int) *peer {
	tb.Helper()
	p := &peer{api: newWatched(tb, objects, changes), database: newDatabase(tb), ended: make(chan error, 1)}
	p.api.objects[migrations], p.api.telling, p.api.rate = objects, telling, peerRate
	p.api.listed = make(chan struct{})
	http := httptest.NewServer(p.api)
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var err error
	p.reader, err = pgx.Connect(ctx, p.database)
	require.NoError(tb, err)
	p.output, err = os.CreateTemp(tb.TempDir(), "output")
	require.NoError(tb, err)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPeer$", "-bench.peer="+who, "-bench.apiserver="+http.URL, "-bench.database="+p.database)
	switch who {
	case "evictrail":
		p.newestOf = `SELECT coalesce(max(object_version::bigint), 0) FROM evictrail.events WHERE object_kind = 'VirtualMachineInstance'`
	case "archive":
		p.newestOf = `SELECT coalesce(max(resource_version), 0) FROM resource WHERE kind = 'VirtualMachineInstance'`
	case "kube-state-metrics":
		cmd, p.metrics = startKubeStateMetrics(ctx, tb, http.URL)
	}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	input, err := cmd.StdinPipe() // TestPeer ends when it is closed, and so when this process ends
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	p.process = cmd.Process.Pid
	go func() { p.ended <- cmd.Wait(); close(p.ended) }()
	p.stop = func() {
		_ = input.Close()
		cancel()
		if err := <-p.ended; err != nil {
			tb.Logf("%s ended: %v", who, err)
		}
		_ = p.reader.Close(context.Background())
		http.CloseClientConnections()
		http.Close()
	}
	p.awaitSignal(tb, p.api.listed)
	p.waitUntilIdle(tb)
	return p
}

func (p *peer) deliver(tb testing.TB) {
	tb.Helper()
	close(p.api.begin)
	p.awaitSignal(tb, p.api.drained)
}

// awaitSignal waits until a channel is closed.
func (p *peer) awaitSignal(tb testing.TB, on chan struct{}) {
	tb.Helper()
	select {
	case <-on:
	case err := <-p.ended:
		require.FailNow(tb, "the process ended", "%v: %s", err, p.readOutput(tb))
	}
}

// requireRunning fails the test where the process has ended.
func (p *peer) requireRunning(tb testing.TB) {
	tb.Helper()
	select {
	case err := <-p.ended:
		require.FailNow(tb, "the process ended", "%v: %s", err, p.readOutput(tb))
	default:
	}
}

func (p *peer) readOutput(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile(p.output.Name())
	require.NoError(tb, err)
	return string(text)
}

// waitUntilIdle waits until the process and Postgres have used less than a twentieth of a processor for half a second.
func (p *peer) waitUntilIdle(tb testing.TB) {
	tb.Helper()
	const pause, idle = 500 * time.Millisecond, 25_000
	for before := p.measureCost(tb); ; {
		p.requireRunning(tb)
		time.Sleep(pause)
		c := p.measureCost(tb)
		if c.cpu+c.postgres-before.cpu-before.postgres < idle {
			return
		}
		before = c
	}
}

// measureCost returns what the process and Postgres have used so far.
func (p *peer) measureCost(tb testing.TB) peerCost {
	tb.Helper()
	var c peerCost
	c.cpu = float64(readProcessTime(tb, p.process, false).Microseconds())
	now, most := readResidentMemory(tb, strconv.Itoa(p.process))
	c.resident, c.most = float64(now), float64(most)
	var dir string
	require.NoError(tb, p.reader.QueryRow(tb.Context(), `SELECT pg_database_size(current_database()), pg_current_wal_lsn() - '0/0'::pg_lsn, current_setting('data_directory')`).
		Scan(&c.stored, &c.wal, &dir))
	text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	require.NoError(tb, err)
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(first)
	require.NoError(tb, err)
	c.postgres = float64(readProcessTime(tb, postmaster, true).Microseconds())
	return c
}

// readProcessTime returns the CPU time that a process has used; as a family, with that of its children, those that have ended too. It counts hundredths of a
// second. Source: proc(5), /proc/pid/stat, fields 4 and 14 to 17.
func readProcessTime(tb testing.TB, pid int, family bool) time.Duration {
	tb.Helper()
	ticks := func(path string, from, to int) (parent, sum int) {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, 0 // it has ended: its parent has its time
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from field 3 on
		parent, err = strconv.Atoi(fields[1])
		require.NoError(tb, err)
		for _, f := range fields[from-3 : to-2] {
			n, err := strconv.Atoi(f)
			require.NoError(tb, err)
			sum += n
		}
		return parent, sum
	}
	stat := fmt.Sprintf("/proc/%d/stat", pid)
	_, all := ticks(stat, 14, 15)
	if family {
		_, all = ticks(stat, 14, 17)
		others, err := filepath.Glob("/proc/[0-9]*/stat")
		require.NoError(tb, err)
		for _, path := range others {
			if parent, n := ticks(path, 14, 15); parent == pid {
				all += n
			}
		}
	}
	return time.Duration(all) * time.Second / 100
}

// readNewestVersion returns the newest resourceVersion of a VMI that can be read; 0 where there is none.
func (p *peer) readNewestVersion(tb testing.TB) (version int) {
	tb.Helper()
	if p.metrics == "" {
		require.NoError(tb, p.reader.QueryRow(tb.Context(), p.newestOf).Scan(&version))
		return version
	}
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, p.metrics, http.NoBody)
	require.NoError(tb, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(tb, err)
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "kubevirt_vmi_version{") {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			require.NoError(tb, err)
			version = max(version, int(value))
		}
	}
	require.NoError(tb, lines.Err())
	return version
}

// startKubeStateMetrics returns the command that runs kube-state-metrics, and the URL of its metrics.
func startKubeStateMetrics(ctx context.Context, tb testing.TB, apiServer string) (cmd *exec.Cmd, metrics string) {
	tb.Helper()
	path, err := build.KubeStateMetrics().Build()
	require.NoError(tb, err)
	address, own := ports.Free(tb), ports.Free(tb)
	port := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
	return exec.CommandContext(ctx, path, "--apiserver="+apiServer, "--custom-resource-state-only", "--custom-resource-state-config-file=testdata/customresourcestate.yaml",
		"--host=127.0.0.1", "--port="+port(address), "--telemetry-host=127.0.0.1", "--telemetry-port="+port(own)), "http://" + address + "/metrics"
}

// TestPeer watches an API server until its standard input is closed. TestPeers starts it; otherwise it has nothing to watch.
func TestPeer(t *testing.T) { //nolint:paralleltest // it is alone in its process
	if *peerName == "" {
		require.Empty(t, *peerAPI)
		return
	}
	ctx := t.Context()
	api := remote(strings.TrimPrefix(*peerAPI, "http://"))
	switch *peerName {
	case "evictrail":
		s, err := store.Open(ctx, *peerDatabase, "")
		require.NoError(t, err)
		_, err = s.Up(ctx)
		require.NoError(t, err)
		sink := s.For("bench", "bench")
		require.NoError(t, sink.Lead(ctx, "this", trail.DefaultThresholds()))
		storetest.KeepUp(t, sink)
		startCollector(ctx, t, api, sink)
	case "archive":
		for _, resource := range []string{vmis, migrations} {
			runArchive(ctx, t, api, resource)
		}
	case "informer":
		for _, resource := range []string{vmis, migrations} {
			startInformer(ctx, t, api, resource)
		}
	default:
		t.Fatalf("-bench.peer=%s: evictrail, archive or informer", *peerName)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	require.NoError(t, err)
	os.Exit(0) // what still runs is not of interest
}

// remote is a RoundTripper to the server at an address, whatever host a request names.
type remote string

func (a remote) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = string(a)
	return http.DefaultTransport.RoundTrip(r)
}

// archiveSchema has the newest version of each object as a whole. It is ours, in the manner of KubeArchive, whose own code does not run here.
const archiveSchema = `
CREATE TABLE IF NOT EXISTS resource (
    uuid               text   PRIMARY KEY,
    api_version        text   NOT NULL,
    kind               text   NOT NULL,
    name               text   NOT NULL,
    namespace          text   NOT NULL,
    resource_version   bigint NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now(),
    cluster_deleted_ts timestamptz,
    data               jsonb  NOT NULL
);
CREATE INDEX IF NOT EXISTS resource_by_name ON resource (kind, api_version, namespace, name);
CREATE INDEX IF NOT EXISTS resource_by_time ON resource (((data -> 'metadata' ->> 'creationTimestamp')))`

const archiveUpsert = `
INSERT INTO resource (uuid, api_version, kind, name, namespace, resource_version, cluster_deleted_ts, data)
VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $7 THEN now() END, $8)
ON CONFLICT (uuid) DO UPDATE
SET resource_version = excluded.resource_version, updated_at = now(), cluster_deleted_ts = excluded.cluster_deleted_ts, data = excluded.data
WHERE resource.resource_version < excluded.resource_version`

// runArchive writes each object that a watch delivers into a table, one statement for each. A watch that fails is not begun again, and fails the test.
func runArchive(ctx context.Context, tb testing.TB, api http.RoundTripper, resource string) {
	tb.Helper()
	conn, err := pgx.Connect(ctx, *peerDatabase)
	require.NoError(tb, err)
	_, err = conn.Exec(ctx, archiveSchema)
	require.NoError(tb, err)
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://apiserver", Transport: api, QPS: -1})
	require.NoError(tb, err)
	initial := true
	w, err := client.Resource(groupVersions[resource].WithResource(resource)).Watch(ctx, metav1.ListOptions{
		SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	require.NoError(tb, err)
	go func() {
		for event := range w.ResultChan() {
			if event.Type == watch.Bookmark {
				continue
			}
			if err := upsertObject(ctx, conn, event); err != nil && ctx.Err() == nil {
				panic(err) // TestPeers shows it
			}
		}
	}()
}

func upsertObject(ctx context.Context, conn *pgx.Conn, event watch.Event) error {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return fmt.Errorf("archive: %s of a %T: %v", event.Type, event.Object, event.Object)
	}
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return err
	}
	data, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, archiveUpsert, string(object.GetUID()), object.GetAPIVersion(), object.GetKind(), object.GetName(), object.GetNamespace(), version,
		event.Type == watch.Deleted, data)
	return err
}
