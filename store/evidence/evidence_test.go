package evidence_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/evidence"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

const aDay = 24 * time.Hour

// march30 is the first of the days on which facts are stored, and sealed the time up to which all days but the last
// have ended.
var (
	march30 = time.Date(2026, 3, 30, 0, 0, 0, 0, time.UTC)
	sealed  = march30.Add(4 * aDay)
)

// shiftFacts returns facts as if the first had been seen at a time. They are others than those of another day.
func shiftFacts(facts []trail.Fact, at time.Time) []trail.Fact {
	by := at.Sub(facts[0].ObservedAt)
	for i := range facts {
		facts[i].ID[0] += byte(at.YearDay())
		facts[i].OccurredAt, facts[i].ObservedAt = facts[i].OccurredAt.Add(by), facts[i].ObservedAt.Add(by)
	}
	return facts
}

// appendOn stores facts of cluster c1 as if a day had been then.
func appendOn(t *testing.T, s *store.Store, day time.Time, facts []trail.Fact) {
	t.Helper()
	var last int64
	require.NoError(t, s.DB.QueryRow(t.Context(), "SELECT coalesce(max(seq), 0) FROM evictrail.events").Scan(&last))
	news, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	require.NotEmpty(t, news.Facts)
	_, err = s.DB.Exec(t.Context(), "UPDATE evictrail.events SET stored_at = $1 WHERE seq > $2", day.Add(5*time.Hour), last)
	require.NoError(t, err)
}

// asksAsAlice reports whether a request of an incident names a person.
func asksAsAlice(f trail.Fact) bool {
	d, is := f.Detail.(*trail.RequestDetail)
	return is && d.User == "alice"
}

// nextStory returns the first incident from a seed on in which a person asks for something, and the seed after it.
func nextStory(seed uint64) (*storetest.SourceFacts, uint64) {
	for ; ; seed++ {
		if story := storetest.GenerateSourceFacts(seed); slices.ContainsFunc(story.Audited, asksAsAlice) {
			return story, seed + 1
		}
	}
}

// fillDays stores facts on five days from march30 on, with people who asked, and on 2026-04-02 also facts of March. The
// last of the days is not sealed.
func fillDays(t *testing.T, s *store.Store) {
	t.Helper()
	var story *storetest.SourceFacts
	seed := uint64(0)
	for i := range 5 {
		story, seed = nextStory(seed)
		day := march30.Add(time.Duration(i) * aDay)
		appendOn(t, s, day, shiftFacts(append(story.Watched, story.Audited...), day.Add(time.Hour)))
		if i == 3 {
			story, seed = nextStory(seed)
			appendOn(t, s, day, shiftFacts(story.Audited, march30.Add(-10*aDay)))
		}
	}
	_, err := s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
}

// openSealed returns a store of its own with those facts, all days but the last sealed, and the anchors of these.
func openSealed(t *testing.T) (*store.Store, []evidence.Anchor) {
	t.Helper()
	s, err := store.Open(t.Context(), storetest.FilledURL(t, []string{"sealed days"}, func(url, _ string) {
		s, err := store.Open(t.Context(), url, "")
		require.NoError(t, err)
		defer s.Close()
		fillDays(t, s)
		links, err := evidence.Seal(t.Context(), s.DB, "c1", sealed)
		require.NoError(t, err)
		require.Len(t, links, 5, "four days, one of them with facts of two months")
	}), "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	links, err := evidence.Links(t.Context(), s.DB, "c1")
	require.NoError(t, err)
	anchors := make([]evidence.Anchor, len(links))
	for i, l := range links {
		anchors[i] = evidence.NewAnchor(l)
	}
	return s, anchors
}

// execSQL runs a statement that changes rows.
func execSQL(t *testing.T, s *store.Store, sql string) {
	t.Helper()
	tag, err := s.DB.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.Positive(t, tag.RowsAffected(), sql)
}

// verifyAll returns what a verification reports.
func verifyAll(t *testing.T, s *store.Store, anchors []evidence.Anchor) evidence.Report {
	t.Helper()
	r, err := evidence.Verify(t.Context(), s.DB, "c1", anchors, nil)
	require.NoError(t, err)
	return r
}

// TestUntouchedIsIntact seals all days that have ended, once, and finds nothing that differs; facts of later are not
// sealed.
func TestUntouchedIsIntact(t *testing.T) {
	t.Parallel()
	s, anchors := openSealed(t)
	again, err := evidence.Seal(t.Context(), s.DB, "c1", sealed)
	require.NoError(t, err)
	require.Empty(t, again)
	r := verifyAll(t, s, anchors)
	require.Empty(t, r.Problems)
	require.Equal(t, 4, r.Days)
	require.Equal(t, 4, r.Anchored)
	require.Equal(t, march30, r.From)
	require.Equal(t, march30.Add(3*aDay), r.To)
	require.Equal(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE stored_at < $1", sealed), int(r.Facts))
	require.Equal(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE stored_at > $1", sealed), int(r.Unsealed))
	require.Zero(t, r.Dropped+r.Erased+int(r.Unnumbered)+r.Unanchored)
	later, err := evidence.Seal(t.Context(), s.DB, "c1", sealed.Add(aDay))
	require.NoError(t, err)
	require.Len(t, later, 1)
	r = verifyAll(t, s, anchors)
	require.Empty(t, r.Problems)
	require.Equal(t, 1, r.Unanchored)
	require.Zero(t, r.Unsealed)
}

// ofDay selects a fact of 2026-03-31, by its place among those of the day.
const ofDay = "(SELECT seq FROM evictrail.events WHERE stored_at::date = '2026-03-31' ORDER BY seq OFFSET 3 LIMIT 1)"

// rebuildChain makes all links of a database again, as somebody would who knows how and can write to it.
func rebuildChain(t *testing.T, s *store.Store) {
	t.Helper()
	execSQL(t, s, "DELETE FROM evictrail.evidence")
	links, err := evidence.Seal(t.Context(), s.DB, "c1", sealed)
	require.NoError(t, err)
	require.NotEmpty(t, links)
}

// TestWhatWasChangedIsFound changes what was sealed, in each way: the day is named, and nothing else but days after it
// whose link no longer follows.
func TestWhatWasChangedIsFound(t *testing.T) {
	t.Parallel()
	march31 := march30.Add(aDay)
	for name, c := range map[string]struct {
		change func(t *testing.T, s *store.Store)
		day    time.Time
		why    string
	}{
		"row changed": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, "UPDATE evictrail.events SET value = value || ' ' WHERE seq = "+ofDay)
		}, march31, "were changed or reordered"},
		"time of storing changed": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, "UPDATE evictrail.events SET stored_at = stored_at + interval '1 us' WHERE seq = "+ofDay)
		}, march31, "were changed or reordered"},
		"detail changed": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, `UPDATE evictrail.events SET detail = jsonb_set(detail, '{code}', '500') WHERE seq = (SELECT min(seq) FROM evictrail.events
				WHERE stored_at::date = '2026-03-31' AND kind = 'eviction_requested' AND detail ? 'code')`)
		}, march31, "were changed or reordered"},
		"name changed": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, `UPDATE evictrail.events SET detail = jsonb_set(detail, '{user}', '"mallory"') WHERE seq = (SELECT min(seq) FROM evictrail.events
				WHERE stored_at::date = '2026-03-31' AND kind = 'eviction_requested' AND detail ? 'user')`)
		}, march31, "names in its requests"},
		"row deleted": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, "DELETE FROM evictrail.events WHERE seq = "+ofDay)
		}, march31, "facts were removed"},
		"day deleted": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, "DELETE FROM evictrail.events WHERE stored_at::date = '2026-03-31'")
		}, march31, "they were removed"},
		"row inserted": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, `INSERT INTO evictrail.events SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid()))).* FROM evictrail.events AS e WHERE seq = `+ofDay)
		}, march31, "facts were added"},
		"rows reordered": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, `WITH two AS (SELECT min(seq) AS a, max(seq) AS b FROM evictrail.events WHERE stored_at::date = '2026-03-31')
				UPDATE evictrail.events SET seq = two.a + two.b - seq FROM two WHERE seq IN (two.a, two.b)`)
		}, march31, "were changed or reordered"},
		"days exchanged": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, `UPDATE evictrail.evidence AS e SET facts_digest = o.facts_digest, names_digest = o.names_digest, names_salt = o.names_salt, facts = o.facts, digest = o.digest
				FROM evictrail.evidence AS o WHERE e.day < date '2026-04-01' AND o.day < date '2026-04-01' AND e.day <> o.day`)
		}, march30, "does not follow"},
		"link removed": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, "DELETE FROM evictrail.evidence WHERE day = '2026-03-31'")
		}, march31, "the database has none"},
		"chain made again": {func(t *testing.T, s *store.Store) {
			t.Helper()
			execSQL(t, s, "UPDATE evictrail.events SET value = value || ' ' WHERE seq = "+ofDay)
			rebuildChain(t, s)
		}, march30, "links were made again"}, // of all days, as salts are others
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, anchors := openSealed(t)
			c.change(t, s)
			r := verifyAll(t, s, anchors)
			require.NotEmpty(t, r.Problems)
			require.Equal(t, c.day, r.Problems[0].Day, r.Problems)
			require.Contains(t, r.Problems[0].Why, c.why)
			if name == "chain made again" {
				require.Empty(t, verifyAll(t, s, nil).Problems, "without the anchor file nobody sees that")
			}
		})
	}
}

// TestRetentionBreaksNoEvidence erases names, and drops the facts of March: neither is a difference, and what is left
// is still compared.
func TestRetentionBreaksNoEvidence(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	s, anchors := openSealed(t)
	salted := "SELECT count(*) FROM evictrail.evidence WHERE names_salt IS NOT NULL"
	require.Equal(t, 5, storetest.CountRows(t, s, salted))
	policy := retention.Policy{Requesters: 2 * aDay}
	did, err := retention.Retain(t.Context(), s.DB, policy, march30.Add(3*aDay+12*time.Hour)) // names from before 2026-03-31 12:00
	require.NoError(t, err)
	require.Positive(t, did.Requesters)
	require.Equal(t, 2, storetest.CountRows(t, s, salted), "those of 2026-04-01 and of April on 2026-04-02 stay")
	r := verifyAll(t, s, anchors)
	require.Empty(t, r.Problems)
	require.Equal(t, 3, r.Erased)
	require.Equal(t, storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE stored_at < $1", sealed), int(r.Facts))

	_, err = s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	policy.Facts = retention.LeastFacts
	did, err = retention.Retain(t.Context(), s.DB, policy, march30.Add(20*aDay))
	require.NoError(t, err)
	require.Len(t, did.Dropped, 1)
	r = verifyAll(t, s, anchors)
	require.Empty(t, r.Problems)
	require.Positive(t, r.Dropped, "some facts of March were kept, as what came after rests on them, but not all of each day")
	require.Equal(t, 4, r.Anchored)
	april := storetest.CountRows(t, s, "SELECT count(*) FROM evictrail.events WHERE stored_at < $1 AND occurred_at >= '2026-04-01'", sealed)
	require.GreaterOrEqual(t, int(r.Facts), april)

	execSQL(t, s, "UPDATE evictrail.events SET value = value || ' ' WHERE seq = (SELECT max(seq) FROM evictrail.events WHERE stored_at::date = '2026-04-02' AND occurred_at >= '2026-04-01')")
	r = verifyAll(t, s, anchors)
	require.Len(t, r.Problems, 1)
	require.Equal(t, march30.Add(3*aDay), r.Problems[0].Day)
	execSQL(t, s, "UPDATE evictrail.evidence SET facts_digest = sha256('x') WHERE day = '2026-03-30'")
	require.Equal(t, march30, verifyAll(t, s, anchors).Problems[0].Day, "digests of what was dropped are still compared with one another")
}

// TestAnchorFile appends each link once, also after a crash in the middle of a line.
func TestAnchorFile(t *testing.T) {
	t.Parallel()
	s, anchors := openSealed(t)
	links, err := evidence.Links(t.Context(), s.DB, "c1")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "anchors")
	appendLinks := func(links []evidence.Link, want int) {
		t.Helper()
		f, err := evidence.OpenAnchorFile(path)
		require.NoError(t, err)
		added, err := f.Append(links)
		require.NoError(t, err)
		require.Equal(t, want, added)
		added, err = f.Append(links)
		require.NoError(t, err)
		require.Zero(t, added)
		require.NoError(t, f.Close())
	}
	appendLinks(links[:2], 2)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text[:len(text)-7], 0o600))
	appendLinks(links, 4)
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	got, torn, err := evidence.ReadAnchors(bytes.NewReader(text))
	require.NoError(t, err)
	require.False(t, torn)
	require.Equal(t, anchors, got)
	require.Empty(t, verifyAll(t, s, got).Problems)

	require.NoError(t, os.WriteFile(path, append([]byte("no anchor\n"), text...), 0o600))
	_, err = evidence.OpenAnchorFile(path)
	require.ErrorContains(t, err, "line 1")
}
