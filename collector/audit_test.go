package collector

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

var auditNow = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// newEvictionEvent returns an audit event of an eviction, changed by pairs of old and new text.
func newEvictionEvent(changes ...string) string {
	const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"6728f619-8420-4bab-9163-f4ee59e2086e","stage":"ResponseComplete",` +
		`"requestURI":"/api/v1/namespaces/shop/pods/virt-launcher-db-x/eviction","verb":"create","user":{"username":"alice","groups":["vm-admins"]},` +
		`"userAgent":"kubectl/v1.35.4","objectRef":{"resource":"pods","namespace":"shop","name":"virt-launcher-db-x","apiVersion":"v1","subresource":"eviction"},` +
		`"responseStatus":{"metadata":{},"status":"Failure","message":"denied","code":429},"requestObject":{"kind":"Eviction","metadata":{}},` +
		`"requestReceivedTimestamp":"2026-11-21T00:42:49.560000Z","stageTimestamp":"2026-11-21T00:42:49.700000Z","annotations":{}}`
	return strings.NewReplacer(changes...).Replace(event)
}

// readAudit reads a text and returns what was taken.
func readAudit(t *testing.T, in io.Reader) ([]tracker.RequestObservation, AuditReport, error) {
	t.Helper()
	var taken []tracker.RequestObservation
	report, err := AuditReader{Now: auditNow, Take: func(r Request) error {
		taken = append(taken, r(tracker.Seen{At: auditNow}))
		return nil
	}}.Read(in)
	return taken, report, err
}

func gzipText(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// TestAuditBadInput puts one bad line between two good ones: the good ones are taken, the bad one is counted and named.
func TestAuditBadInput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line    string
		skipped, says string
	}{
		{"bad JSON", `{"kind":"Event",`, "", "line 2: bad JSON"},
		{"not JSON", "E1121 audit log rotated", "", "line 2: bad JSON"},
		{"wrong kind", `{"kind":"PodList","apiVersion":"v1","items":[]}`, "", `line 2: apiVersion "v1", kind "PodList": expected an Event or EventList of audit.k8s.io`},
		{"a field of another type", newEvictionEvent(`"code":429`, `"code":"many"`), "", "line 2: bad JSON"},
		{"a number", "42", "", "line 2: bad JSON"},
		{"an array of nothing that is an event", "[42]", "", "line 2, item 1: bad JSON"},
		{"half an array", "[" + newEvictionEvent() + ",", "", "line 2: bad JSON"},
		{"null", "null", "", `line 2: apiVersion "", kind ""`},
		{"future time", newEvictionEvent("2026-11-21T00:42", "2031-11-21T00:42"), "", "line 2: requestReceivedTimestamp 2031-11-21T00:42:49Z"},
		{"ancient time", newEvictionEvent("2026-11-21T00:42", "1970-01-01T00:00"), "", "line 2: requestReceivedTimestamp 1970-01-01"},
		{"no time", newEvictionEvent(`"requestReceivedTimestamp":"2026-11-21T00:42:49.560000Z",`, ""), "", "line 2: requestReceivedTimestamp 0001"},
		{"answered before it was asked", newEvictionEvent(`"stageTimestamp":"2026-11-21T00:42`, `"stageTimestamp":"2026-11-20T00:42`), "", "line 2: stageTimestamp 2026-11-20"},
		{"no auditID", newEvictionEvent("6728f619-8420-4bab-9163-f4ee59e2086e", ""), "", `line 2: auditID ""`},
		{"a namespace that is none", newEvictionEvent(`"namespace":"shop"`, `"namespace":"Shop\nfoo"`), "", `line 2: namespace "Shop\nfoo"`},
		{"a pod name with an escape", newEvictionEvent(`"name":"virt-launcher-db-x"`, `"name":"virt-launcher-\u001b[31m"`), "", `line 2: name "virt-launcher-\x1b[31m"`},
		{"too long a line", strings.Repeat("x", MaxAudit+1), "", "line 2: longer than"},
		{"deep JSON", newEvictionEvent(`"requestObject":{"kind":"Eviction","metadata":{}}`, `"requestObject":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), "", "line 2: bad JSON: json: cannot unmarshal"},
		{"another pod", newEvictionEvent("virt-launcher-db-x", "nginx-1"), "skipped", ""},
		{"a stage before the answer", newEvictionEvent("ResponseComplete", "RequestReceived"), "skipped", ""},
		{"a read", newEvictionEvent(`"verb":"create"`, `"verb":"get"`), "skipped", ""},
		{"no object", newEvictionEvent(`"objectRef":{"resource":"pods","namespace":"shop","name":"virt-launcher-db-x","apiVersion":"v1","subresource":"eviction"}`, `"objectRef":null`), "skipped", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			good := []string{newEvictionEvent(), newEvictionEvent("6728f619", "00000000")}
			text := good[0] + "\n" + c.line + "\n\n" + good[1]
			if strings.HasPrefix(c.name, "deep") {
				c.says = "line 2: bad JSON"
			}
			for name, in := range map[string]io.Reader{
				"plain": strings.NewReader(text), "gzip": bytes.NewReader(gzipText(t, text)), "byte by byte": iotest.HalfReader(strings.NewReader(text)),
			} {
				taken, report, err := readAudit(t, in)
				require.NoError(t, err, name)
				require.Len(t, taken, 2, name)
				require.Equal(t, 2, report.Taken, name)
				if c.skipped != "" {
					require.Equal(t, 1, report.Skipped, name)
					require.Empty(t, report.First, name)
					continue
				}
				require.Equal(t, 1, report.Refused, name)
				require.Contains(t, report.First, c.says, name)
			}
		})
	}
}

// TestAuditCutShort takes what a broken stream held before it broke.
func TestAuditCutShort(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 2000 {
		text.WriteString(newEvictionEvent("6728f619", fmt.Sprintf("%08x", i*7919)) + "\n")
	}
	whole := gzipText(t, text.String())
	taken, report, err := readAudit(t, bytes.NewReader(whole[:len(whole)/2]))
	require.ErrorContains(t, err, "cut short after line")
	require.NotEmpty(t, taken)
	require.Equal(t, len(taken), report.Taken)
	require.Zero(t, report.Refused)

	_, _, err = readAudit(t, bytes.NewReader(whole[:5]))
	require.ErrorContains(t, err, "bad gzip")
	_, report, err = readAudit(t, strings.NewReader(""))
	require.NoError(t, err)
	require.Zero(t, report)
	_, _, err = readAudit(t, iotest.ErrReader(errors.New("the disk")))
	require.ErrorContains(t, err, "the disk")
	bomb := gzipText(t, strings.Repeat(" ", 64<<20))
	require.Less(t, len(bomb), 1<<20)
	_, err = AuditReader{Now: auditNow, Limit: MaxAudit, Take: func(Request) error { return nil }}.Read(bytes.NewReader(bomb))
	require.ErrorIs(t, err, ErrTooLarge)
}

// TestAuditShapes reads the same two events in every shape that they come in.
func TestAuditShapes(t *testing.T) {
	t.Parallel()
	a, b := newEvictionEvent(), newEvictionEvent("6728f619", "00000000")
	item := strings.ReplaceAll(b, `"kind":"Event","apiVersion":"audit.k8s.io/v1",`, "")
	list := `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[` + a + "," + item + "]}"
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, []byte(list), "", "  "))
	for name, text := range map[string]string{
		"lines": a + "\n" + b + "\n", "no end of line": a + "\n" + b, "list": list, "pretty list": pretty.String(), "array": "[" + a + "," + item + "]", "pretty array": "[\n" + a + ",\n" + b + "\n]", "DOS": a + "\r\n\r\n" + b + "\r\n",
	} {
		taken, report, err := readAudit(t, strings.NewReader(text))
		require.NoError(t, err, name)
		require.Len(t, taken, 2, name)
		require.Zero(t, report.Refused, name)
		require.Equal(t, "alice", taken[1].Detail.User, name)
	}
	taken, report, err := readAudit(t, strings.NewReader(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[`+a+`,{"auditID":7},`+item+`]}`))
	require.NoError(t, err)
	require.Len(t, taken, 2)
	require.Contains(t, report.First, "line 1, item 2: bad JSON")
}

// TestAuditKeepsWhatMatters reads what is kept of an event, and that nothing else is.
func TestAuditKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	const body = `"requestObject":{"kind":"Eviction","metadata":{}}`
	detail := func(changes ...string) trail.RequestDetail {
		taken, report, err := readAudit(t, strings.NewReader(newEvictionEvent(changes...)))
		require.NoError(t, err)
		require.Len(t, taken, 1, report.First)
		return taken[0].Detail
	}
	d := detail(body, `"requestObject":{"kind":"Eviction","metadata":{"annotations":{"reason":"triggered by P/L: ","requested-by":"sigs.k8s.io/descheduler","secret":"s3cr3t"}},"deleteOptions":{"dryRun":["All"]}}`)
	require.Equal(t, "triggered by P/L: ", d.StatedReason)
	require.Equal(t, "sigs.k8s.io/descheduler", d.RequestedBy)
	require.True(t, d.DryRun)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "s3cr3t")

	require.True(t, detail("/eviction", "/eviction?dryRun=All").DryRun)
	require.Equal(t, "bob", detail(`"user":{`, `"impersonatedUser":{"username":"bob"},"user":{`).User)
	require.Empty(t, detail(`"username":"alice",`, "").User, "a missing user is no error")
	d = detail(`"annotations":{}`, `"annotations":{"authorization.k8s.io/reason":"RBAC","evictrail-eviction-reason/reason":"why","evictrail-eviction-reason/requested-by":"sigs.k8s.io/descheduler",`+
		`"eviction-observer.evictrail.io/evictrail-review":"u-1","failed-open.validating.webhook.admission.k8s.io/round_0_index_1":"hook"}`)
	require.Equal(t, "why", d.StatedReason, "from the policy, at level Metadata")
	require.Equal(t, "sigs.k8s.io/descheduler", d.RequestedBy)
	require.Equal(t, "u-1", d.Review)
	require.Equal(t, []string{"hook"}, d.FailedOpen)
	require.Empty(t, detail(`"annotations":{}`, `"annotations":{"authorization.k8s.io/reason":"RBAC: allowed"}`).StatedReason)

	long := strings.Repeat("ä", 50<<10)
	d = detail(`"message":"denied"`, `"message":"`+long+`"`, `"username":"alice"`, `"username":"`+long+`"`)
	require.LessOrEqual(t, len(d.Message), maxText)
	require.LessOrEqual(t, len(d.User), maxName)
	require.True(t, strings.HasSuffix(d.Message, "ä…"))
}

// TestAuditRecorded reads every recorded audit log: nothing is refused, and what is left out is KubeVirt's own.
func TestAuditRecorded(t *testing.T) {
	t.Parallel()
	logs, err := fs.Glob(evictrail.Recordings(), "*/audit.jsonl.gz")
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	actions := map[trail.Action]int{}
	for _, name := range logs {
		file, err := evictrail.Recordings().Open(name)
		require.NoError(t, err)
		taken, report, err := readAudit(t, file)
		require.NoError(t, err)
		require.Zero(t, report.Refused, report.First)
		for _, o := range taken {
			actions[o.Action]++
		}
	}
	require.Equal(t, map[trail.Action]int{
		trail.ActionEvict: 100, trail.ActionCreateMigration: 5, trail.ActionDeleteMigration: 1, trail.ActionMigrate: 4, trail.ActionCancel: 1, trail.ActionChangeNode: 2,
	}, actions)
}

// TestAuditEventsAreCounted: millions of numbers, empty objects or lines in one body are not read one by one, as each of them costs time. A log has no end.
func TestAuditEventsAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body          string
		decoded, many int // in a body, in a log
	}{
		"numbers":         {"[" + strings.Repeat("1,", 1_000_000) + "1]", maxEvents, maxEvents + 1},
		"objects":         {"[" + strings.Repeat("{},", 1_000_000) + "{}]", maxEvents, maxEvents + 1},
		"items of a list": {`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + strings.Repeat("{},", 1_000_000) + "{}]}", maxEvents, maxEvents + 1},
		"lines":           {strings.Repeat("1\n", 100_000), maxEvents, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := AuditReader{Now: auditNow, Limit: MaxAudit, Take: func(Request) error { return nil }}
			report, err := reader.Read(strings.NewReader(c.body))
			require.ErrorIs(t, err, ErrTooLarge)
			require.ErrorContains(t, err, "more than 50000")
			require.Equal(t, c.decoded, report.Events())

			reader.Limit = 0
			report, err = reader.Read(strings.NewReader(c.body))
			require.NoError(t, err)
			require.Equal(t, c.many, report.Events(), "what is not read is one refusal")
		})
	}
}

// FuzzAudit reads anything: it neither panics nor takes what could not be stored, and counts each event once.
func FuzzAudit(f *testing.F) {
	f.Add([]byte(newEvictionEvent()))
	f.Add([]byte(newEvictionEvent() + "\n{\n" + newEvictionEvent()))
	f.Add([]byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[` + newEvictionEvent() + `,{"stage":"Panic"}]}`))
	f.Add([]byte("{\n" + newEvictionEvent() + "\n}"))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		tr := tracker.New("fuzz")
		taken := 0
		report, err := AuditReader{Now: auditNow, Limit: 1 << 20, Take: func(r Request) error {
			taken++
			facts := tr.Observe(r(tracker.Seen{At: auditNow}))
			require.Len(t, facts, 1)
			require.NotEmpty(t, facts[0].Reason)
			require.NotEmpty(t, facts[0].Subject.Name)
			require.False(t, facts[0].OccurredAt.Before(birth))
			return nil
		}}.Read(bytes.NewReader(in))
		require.Equal(t, taken, report.Taken)
		require.Equal(t, report.Refused > 0, report.First != "")
		if err == nil && report.Lines == 0 {
			require.Zero(t, report.Events())
		}
	})
}

// FuzzReview answers anything that names its UID: allowed.
func FuzzReview(f *testing.F) {
	f.Add([]byte(reviewJSON("u-1", "alice", "virt-launcher-db-x")))
	f.Add([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"x"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := ReadReview(in)
		if err != nil {
			return
		}
		var answer reviewAnswer
		require.NoError(t, json.Unmarshal(r.Answer(), &answer))
		require.True(t, answer.Response.Allowed)
		require.NotEmpty(t, answer.Response.UID)
		if r.Request != nil {
			require.Len(t, tracker.New("fuzz").Observe(r.Request(tracker.Seen{At: auditNow})), 1)
		}
	})
}

// reviewJSON returns an AdmissionReview of an eviction.
func reviewJSON(uid, user, pod string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":%q,"kind":{"group":"policy","version":"v1","kind":"Eviction"},`+
		`"resource":{"group":"","version":"v1","resource":"pods"},"subResource":"eviction","name":%q,"namespace":"shop","operation":"CREATE","userInfo":{"username":%q},`+
		`"object":{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":%q,"namespace":"shop","annotations":{"reason":"why","requested-by":"me"}}},"dryRun":false}}`, uid, pod, user, pod)
}
