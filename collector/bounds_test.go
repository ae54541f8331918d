package collector

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/metrics"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// fillTexts makes every text in a value as long as given, and its lists and maps, and says so many entries.
func fillTexts(v reflect.Value, text string, entries int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem(), text, entries)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), entries, entries))
		for i := range entries {
			fillTexts(v.Index(i), text, entries)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range entries {
			v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("%d-%s", i, text)), reflect.ValueOf(text))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Type != reflect.TypeFor[time.Time]() && (f.IsExported() || f.Anonymous) {
				fillTexts(v.Field(i), text, entries)
			}
		}
	default:
	}
}

// walkTexts calls with each text in a value.
func walkTexts(v reflect.Value, with func(string)) {
	switch v.Kind() {
	case reflect.String:
		with(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walkTexts(v.Elem(), with)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkTexts(v.Index(i), with)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			walkTexts(key, with)
			walkTexts(v.MapIndex(key), with)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != reflect.TypeFor[time.Time]() {
				walkTexts(v.Field(i), with)
			}
		}
	default:
	}
}

// requireBounded requires that what was decoded of an object has bounded texts.
func requireBounded(t *testing.T, r watched, o *object) {
	t.Helper()
	longest, all := maxMessage, 0
	if r.kind == trail.ObjectPolicy {
		longest = maxPolicy
	}
	count := func(text string) {
		require.LessOrEqual(t, len(text), longest, text[:min(len(text), 80)])
		all += len(text)
	}
	for _, text := range []string{o.Namespace, o.Name, o.UID, o.ResourceVersion} {
		count(text)
	}
	if o.err != nil {
		require.LessOrEqual(t, len(o.err.Error()), 2*maxName+maxEcho+len("read /: "))
		return
	}
	if o.observe == nil { // it is about no VM
		return
	}
	walkTexts(reflect.ValueOf(o.observe(tracker.Seen{})), count)
	require.LessOrEqual(t, all, maxTexts+4*maxName+maxPolicy)
}

// TestTextsOfObjectsAreClipped reads an object of each watched resource of which every text is too long, and every list too.
func TestTextsOfObjectsAreClipped(t *testing.T) {
	t.Parallel()
	for _, r := range watchedWith(&PolicyMap{Namespace: "descheduler", Name: "descheduler"}) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []struct{ bytes, entries int }{{5000, 3}, {50_000, 1}, {100, 5000}, {3000, 300}} {
				into := r.slim()
				fillTexts(reflect.ValueOf(into).Elem(), launcherPrefix+strings.Repeat("ä", size.bytes/2), size.entries) // some are read of virt-launcher pods only
				if m, is := into.(*slimPolicyMap); is {
					m.Data = map[string]string{policyKey: strings.Repeat("ä", size.bytes)}
				}
				raw, err := json.Marshal(into)
				require.NoError(t, err)
				o := r.decodeJSON(raw)
				require.NoError(t, o.err)
				require.NotNil(t, o.observe)
				requireBounded(t, r, o)
			}
		})
	}
}

func TestMessageOfKubernetesEvent(t *testing.T) {
	t.Parallel()
	read := func(message string) string {
		o := decodeObject(fmt.Appendf(nil, `{"metadata":{"name":"e","namespace":"shop","uid":"u","resourceVersion":"7"},"message":%q}`, message), &slimKubeEvent{})
		require.NoError(t, o.err)
		return o.observe(tracker.Seen{}).(tracker.KubeEventObservation).Message
	}
	whole := strings.Repeat("x", maxMessage)
	require.Equal(t, whole, read(whole))
	const cut = "…"
	require.Equal(t, whole[:maxMessage-len(cut)]+cut, read(whole+"x"), "what was cut off is marked")
	require.Less(t, len(read(strings.Repeat("x", maxMessage-len(cut)-1)+"äöü")), maxMessage)
	require.True(t, utf8.ValidString(read(strings.Repeat("x", maxMessage-len(cut)-1)+"äöü")), "at the end of a rune")
}

// TestErrorsAreBrief reads what cannot be read and is quoted by the error that says so.
func TestErrorsAreBrief(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 1<<20)
	for _, field := range []string{`"count":` + long, `"lastTimestamp":"` + long + `"`, `"count":"` + long + `"`, `"` + long + `":1,"count":"x"`} {
		o := decodeObject([]byte(`{"metadata":{"name":"e","namespace":"shop","uid":"u","resourceVersion":"7"},`+field+`}`), &slimKubeEvent{})
		require.ErrorContains(t, o.err, "read shop/e: ")
		require.LessOrEqual(t, len(o.err.Error()), maxEcho+len("read shop/e: "))
	}
}

// TestRefusalsAreBrief refuses an audit event and a review that quote megabytes: what is said of them is short.
func TestRefusalsAreBrief(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("9", 9_000_000)
	for _, body := range []string{`{"apiVersion":` + digits + `}`, `{"responseStatus":{"code":` + digits + `}}`, `[{"responseStatus":{"code":` + digits + `}}]`, `{"` + digits + `":`} {
		_, report, err := readAudit(t, strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, 1, report.Refused)
		require.Contains(t, report.First, "line 1")
		require.LessOrEqual(t, len(report.First), maxEcho+len("line 1, item 1: "))
		_, err = ReadReview([]byte(body))
		require.Error(t, err)
		require.LessOrEqual(t, len(err.Error()), maxEcho+len("bad JSON: "))
	}
}

// hostileBodies are audit events of 10 MiB of what takes most memory when it is decoded.
func hostileBodies() map[string]string {
	many := func(begin, entry, end string) string {
		n := (MaxAudit - len(begin) - len(end)) / (len(entry) + 1)
		return begin + strings.Repeat(entry+",", n-1) + entry + end
	}
	const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"a",`
	annotations := &strings.Builder{}
	for i := 0; annotations.Len() < MaxAudit-200; i++ {
		fmt.Fprintf(annotations, `"%x":"",`, i)
	}
	return map[string]string{
		"events":      many(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[`, `{}`, `]}`),
		"an array":    many(`[`, `1`, `]`),
		"groups":      many(event+`"user":{"groups":[`, `""`, `]}}`),
		"causes":      many(event+`"responseStatus":{"details":{"causes":[`, `{}`, `]}}}`),
		"annotations": event + `"annotations":{` + annotations.String() + `"z":""}}`,
		"a body":      many(event+`"requestObject":{"deleteOptions":{"dryRun":[`, `""`, `]}}}`),
	}
}

// TestHostileAuditBodies decodes bodies that would take many times their size.
func TestHostileAuditBodies(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	for name, body := range hostileBodies() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, report, err := readAudit(t, strings.NewReader(body))
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			require.Positive(t, report.Events())
			grown := int64(after.HeapSys) - int64(before.HeapSys)
			t.Logf("%s: heap grown by %d MiB, %d MiB allocated", name, grown>>20, (after.TotalAlloc-before.TotalAlloc)>>20)
			require.Less(t, grown, int64(64<<20), "bytes that the heap has grown by")
		})
	}
}

// TestEventsThatGiveWayAreCounted floods the Events that wait for a migration.
func TestEventsThatGiveWayAreCounted(t *testing.T) {
	t.Parallel()
	r := startCollector(t, newAPI(), &sink{}, nil)
	var events []Observation
	for i := range 4000 {
		events = append(events, func(seen tracker.Seen) tracker.Observation {
			uid := strconv.Itoa(i)
			return tracker.KubeEventObservation{
				Seen: seen, Meta: tracker.Meta{UID: uid, Namespace: "shop", Name: "e", ResourceVersion: uid}, Reason: "FailedMigration", Message: strings.Repeat("x", maxMessage), Count: 1,
				About: tracker.Involved{Kind: "VirtualMachineInstanceMigration", Namespace: "shop", Name: "m", UID: "never"},
			}
		})
	}
	_, err := r.submitObservations(t.Context(), events)
	require.NoError(t, err)
	displaced := testutil.ToFloat64(r.metrics.DisplacedEvents)
	require.Greater(t, displaced, 2000.0)
	require.InDelta(t, displaced, testutil.ToFloat64(r.metrics.Facts.WithLabelValues(string(trail.KindKubernetesEvent), metrics.StageObserved)), 0, "they are recorded")
}

// TestAPanicOfTheTrackerStopsNothing: the observation on which it panics is counted and logged once, and others are recorded.
func TestAPanicOfTheTrackerStopsNothing(t *testing.T) {
	t.Parallel()
	s := &sink{}
	r := startCollector(t, newAPI(), s, nil)
	nothing := func(tracker.Seen) tracker.Observation { return nil }
	_, err := r.submitObservations(t.Context(), []Observation{nothing, nothing, func(seen tracker.Seen) tracker.Observation {
		return tracker.NodeObservation{Seen: seen, Meta: tracker.Meta{UID: "n", Name: "n1", ResourceVersion: "1"}, Unschedulable: true}
	}})
	require.NoError(t, err)
	require.InDelta(t, 2, testutil.ToFloat64(r.metrics.Lost.WithLabelValues(metrics.KindUnknown, metrics.LostDecode)), 0)
	require.Equal(t, 1, strings.Count(r.log.String(), "observation not recorded"), r.log)
	require.Eventually(t, func() bool { return s.countKinds()[trail.KindNodeCordoned] == 1 }, 2*time.Minute, 10*time.Millisecond)
}
