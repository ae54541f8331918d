package read_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

func TestNames(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	for _, cluster := range []string{"c1", "c2"} {
		_, err := s.Append(t.Context(), cluster, storetest.Incident(cluster, 3))
		require.NoError(t, err)
	}
	node := tracker.NodeObservation{Meta: tracker.Meta{UID: "node-2", Name: "%n", ResourceVersion: "1"}, Seen: tracker.Seen{At: start}, Unschedulable: true}
	_, err := s.Append(t.Context(), "other", tracker.New("other").Observe(node))
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		query trail.NameQuery
		want  []string
	}{
		{"clusters", trail.NameQuery{Kind: trail.NameCluster}, []string{"c1", "c2", "other"}},
		{"clusters that begin so", trail.NameQuery{Kind: trail.NameCluster, Prefix: "c"}, []string{"c1", "c2"}},
		{"each namespace once", trail.NameQuery{Kind: trail.NameNamespace}, []string{"shop"}},
		{"VMs", trail.NameQuery{Kind: trail.NameVM, Prefix: "sh"}, []string{"shop/db-0", "shop/db-1", "shop/db-2"}},
		{"one VM", trail.NameQuery{Kind: trail.NameVM, Prefix: "shop/db-1", Cluster: "c2"}, []string{"shop/db-1"}},
		{"nodes of all clusters", trail.NameQuery{Kind: trail.NameNode}, []string{"%n", "n1", "n2"}},
		{"nodes of one", trail.NameQuery{Kind: trail.NameNode, Cluster: "c1"}, []string{"n1", "n2"}},
		{"a prefix is no pattern", trail.NameQuery{Kind: trail.NameNode, Prefix: "%"}, []string{"%n"}},
		{"none", trail.NameQuery{Kind: trail.NameNode, Cluster: "c3"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := s.Names(t.Context(), c.query)
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, got)
			require.IsIncreasing(t, append([]string{""}, got...))
		})
	}
}

// TestColumnsAreDescribed wants each view that can be listed to be there, with its columns, each with a type and a comment.
func TestColumnsAreDescribed(t *testing.T) {
	t.Parallel()
	columns, err := storetest.New(t).Columns(t.Context())
	require.NoError(t, err)
	of := map[string][]string{}
	for _, c := range columns {
		require.NotEmpty(t, c.Type)
		require.NotEmpty(t, c.About, "%s.%s", c.View, c.Name)
		of[c.View] = append(of[c.View], c.Name)
	}
	for _, v := range trail.Views() {
		require.Subset(t, of[v.Name], append(v.Brief, v.At, v.Key, "cluster"), v.Name)
	}
}
