package load_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
)

// sample is what questions are about: names out of the database, those that have a long story and those that have a short one.
type sample struct {
	seen       time.Time // when the large cluster was seen last
	vms        []trail.Subject
	nodes      []trail.Subject
	namespaces []string
	migrations []migrationName
	loops      []string               // the IDs of the newest
	pages      map[string][]trail.Key // keys with which pages of each view begin, by its noun
	dice       *rand.Rand
	chance     *rand.PCG // behind the dice
}

type migrationName struct {
	Name string `json:"migration"`
	UID  string `json:"migration_uid"`
}

// Some of the VMs are drawn; the others are those that were evacuated lately, and those in whose loops much happened.
const (
	drawnVMs = 400
	lateVMs  = 200
)

func loadSample(tb testing.TB, s *store.Store) sample {
	tb.Helper()
	out := sample{pages: map[string][]trail.Key{}, chance: rand.NewPCG(1, 2)}
	out.dice = rand.New(out.chance)
	var err error
	out.seen, err = s.LastAlive(tb.Context(), large)
	require.NoError(tb, err)
	known := map[trail.Subject]bool{}
	vm := func(namespace, name string) {
		if of := trail.VMISubject(namespace, name); namespace != "" && name != "" && !known[of] {
			known[of] = true
			out.vms = append(out.vms, of)
		}
	}
	type place struct{ Namespace, VMI, Node string }
	placements := rowsOf[place](tb, s, trail.ViewPlacements, trail.Query{Cluster: large, Open: true, Limit: 10_000})
	nodes, namespaces := map[string]bool{}, map[string]bool{}
	out.dice.Shuffle(len(placements), func(i, j int) { placements[i], placements[j] = placements[j], placements[i] })
	for i, p := range placements {
		if i < drawnVMs {
			vm(p.Namespace, p.VMI)
		}
		if !nodes[p.Node] {
			nodes[p.Node] = true
			out.nodes = append(out.nodes, trail.Subject{Kind: trail.SubjectNode, Name: p.Node})
		}
		if !namespaces[p.Namespace] {
			namespaces[p.Namespace] = true
			out.namespaces = append(out.namespaces, p.Namespace)
		}
	}
	for _, v := range []trail.View{trail.ViewEvacuations, trail.ViewLoops} {
		for _, p := range rowsOf[place](tb, s, v, trail.Query{Cluster: large, Limit: lateVMs}) {
			vm(p.Namespace, p.VMI)
		}
	}
	out.migrations = rowsOf[migrationName](tb, s, trail.ViewMigrations, trail.Query{Cluster: large, Limit: 500})
	type loop struct {
		ID string `json:"loop_id"`
	}
	for _, l := range rowsOf[loop](tb, s, trail.ViewLoops, trail.Query{Cluster: large, Limit: lateVMs}) {
		out.loops = append(out.loops, l.ID)
	}
	for _, v := range trail.Views() {
		q := trail.Query{Cluster: large, Limit: 200}
		for range 10 {
			page, err := s.ListJSON(tb.Context(), v, q)
			require.NoError(tb, err)
			if page.Next == nil {
				break
			}
			out.pages[v.Noun] = append(out.pages[v.Noun], *page.Next)
			q.Before = page.Next
		}
	}
	return out
}

// rowsOf lists a view.
func rowsOf[R any](tb testing.TB, s *store.Store, v trail.View, q trail.Query) []R {
	tb.Helper()
	page, err := s.ListJSON(tb.Context(), v, q)
	require.NoError(tb, err)
	out := make([]R, len(page.Rows))
	for i, row := range page.Rows {
		require.NoError(tb, json.Unmarshal(row, &out[i]))
	}
	return out
}

// pickOne returns one of some things.
func pickOne[T any](s sample, of []T) T { return of[s.dice.IntN(len(of))] }
