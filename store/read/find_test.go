package read_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

func TestFind(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, cluster := range []string{"c1", "c2"} {
		_, err := s.Append(t.Context(), cluster, storetest.Incident(cluster, 12))
		require.NoError(t, err)
	}
	vm := func(cluster, name string) trail.Found {
		return trail.Found{Cluster: cluster, Kind: trail.FoundVM, Namespace: "shop", Name: name, Node: "n2", State: trail.VMRunning}
	}
	attempt := func(cluster, name, vmi, uid string) trail.Found {
		return trail.Found{Cluster: cluster, Kind: trail.FoundMigration, Namespace: "shop", Name: name, VMI: vmi, UID: uid}
	}
	byUID := vm("c1", "db-3")
	byUID.UID = "uid-db-3"
	for _, c := range []struct {
		name, cluster, text string
		want                []trail.Found
	}{
		{"exact comes before what begins so", "c1", "db-1", []trail.Found{vm("c1", "db-1"), vm("c1", "db-10"), vm("c1", "db-11")}},
		{"all clusters", "", "db-10", []trail.Found{vm("c1", "db-10"), vm("c2", "db-10")}},
		{"within a name", "c2", "b-11", []trail.Found{vm("c2", "db-11")}},
		{"with the namespace", "c1", "shop/db-11", []trail.Found{vm("c1", "db-11")}},
		{"with the end of the namespace", "c1", "hop/db-11", []trail.Found{vm("c1", "db-11")}},
		{"in capitals, with blanks", "c1", " DB-11 ", []trail.Found{vm("c1", "db-11")}},
		{"a node", "c1", "n1", []trail.Found{{Cluster: "c1", Kind: trail.FoundNode, Name: "n1"}}},
		{"a migration by its name", "c1", "evac-3-1", []trail.Found{attempt("c1", "evac-3-1", "db-3", "m-3-1")}},
		{"migrations by the beginning of their names", "c1", "evac-3", []trail.Found{
			attempt("c1", "evac-3-0", "db-3", "m-3-0"), attempt("c1", "evac-3-1", "db-3", "m-3-1"),
		}},
		{"a migration by its UID", "c2", "m-3-0", []trail.Found{attempt("c2", "evac-3-0", "db-3", "m-3-0")}},
		{"a VM by the UID of its VMI", "c1", "uid-db-3", []trail.Found{byUID}},
		{"patterns mean themselves", "c1", "%", nil},
		{"underscores as well", "c1", "db_1", nil},
		{"nothing", "c1", " ", nil},
		{"another cluster", "c3", "db-1", nil},
		{"NUL", "c1", "\x00", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, total, err := s.Find(t.Context(), c.cluster, c.text)
			require.NoError(t, err)
			require.Len(t, got, len(c.want))
			require.Equal(t, len(c.want), total)
			require.ElementsMatch(t, c.want, got)
			if len(got) > 0 {
				require.Equal(t, c.want, got)
			}
		})
	}
	many, _, err := s.Find(t.Context(), "", "e")
	require.NoError(t, err)
	require.LessOrEqual(t, len(many), trail.MostFound)
	require.Len(t, many, 48, "the migrations of two clusters, and no more: VMs and nodes have no such letter")
}

// TestFindCountsWhatItLeavesOut searches for what is found more often than a search returns: it says how often.
func TestFindCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, cluster := range []string{"c1", "c2", "c3"} {
		_, err := s.Append(t.Context(), cluster, storetest.Incident(cluster, 12))
		require.NoError(t, err)
	}
	found, total, err := s.Find(t.Context(), "", "e")
	require.NoError(t, err)
	require.Len(t, found, trail.MostFound)
	require.Equal(t, 72, total, "the migrations of three clusters")
}

// TestListsWithoutCluster: a question that names no cluster returns what the questions about each cluster return together.
func TestListsWithoutCluster(t *testing.T) {
	storetest.SkipInShort(t)
	t.Parallel()
	s := storetest.New(t)
	clusters := []string{"c1", "c2", "c3"}
	for i, cluster := range clusters {
		_, err := s.Append(t.Context(), cluster, storetest.Incident(cluster, 1+2*i))
		require.NoError(t, err)
	}
	for _, v := range trail.Views() {
		for _, q := range []trail.Query{
			{Namespace: "shop"}, {Namespace: "none"}, {Namespace: "shop", VMI: "db-1"}, {VMI: "db-1"}, {VMI: "db-9"}, {Node: "n1"}, {Node: "n9"},
			{Node: "n1", Namespace: "shop", Limit: 7},
		} {
			var want []string
			for _, of := range clusters {
				q.Cluster = of
				page, err := s.ListJSON(t.Context(), v, q)
				require.NoError(t, err)
				for _, row := range page.Rows {
					want = append(want, string(row))
				}
			}
			q.Cluster = ""
			page, err := s.ListJSON(t.Context(), v, q)
			require.NoError(t, err)
			if q.Limit > 0 {
				require.Len(t, page.Rows, min(len(want), q.Limit), "%s %+v", v.Noun, q)
				continue
			}
			var got []string
			for _, row := range page.Rows {
				got = append(got, string(row))
			}
			require.ElementsMatch(t, want, got, "%s %+v", v.Noun, q)
			table, err := s.ListText(t.Context(), v, q)
			require.NoError(t, err)
			require.Len(t, table.Rows, len(want))
			require.NotEmpty(t, table.Columns)
		}
	}
}

// TestListsInBothOrders reads lists page by page, the newest and the oldest first, with filters: each order has the same rows.
func TestListsInBothOrders(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	_, err := s.Append(t.Context(), "c1", storetest.Incident("c1", 5))
	require.NoError(t, err)
	readPages := func(v trail.View, q trail.Query) (rows []string) {
		q.Limit = 3
		for {
			page, err := s.ListJSON(t.Context(), v, q)
			require.NoError(t, err)
			for _, row := range page.Rows {
				rows = append(rows, string(row))
			}
			if page.Next == nil {
				return rows
			}
			q.Before = page.Next
		}
	}
	for _, c := range []struct {
		view trail.View
		q    trail.Query
		rows int
	}{
		{trail.ViewMigrations, trail.Query{}, 10},
		{trail.ViewMigrations, trail.Query{Values: map[string]string{"phase": trail.PhaseFailed}}, 5},
		{trail.ViewMigrations, trail.Query{Namespace: "shop", Values: map[string]string{"phase": trail.PhaseFailed, "trigger": "hotplug"}}, 0},
		{trail.ViewPlacements, trail.Query{Open: true}, 5},
		{trail.ViewPlacements, trail.Query{Closed: true}, 5},
		{trail.ViewPlacements, trail.Query{}, 10},
		{trail.ViewGaps, trail.Query{Closed: true}, 0},
	} {
		newest := readPages(c.view, c.q)
		require.Len(t, newest, c.rows, "%s %+v", c.view.Noun, c.q)
		c.q.Oldest = true
		oldest := readPages(c.view, c.q)
		slices.Reverse(oldest)
		require.Equal(t, newest, oldest, "%s %+v", c.view.Noun, c.q)
	}
}
