package migrations

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDefinitionsMayBeAppliedAgain: each file of a view defines that view alone, and nothing fails where it is there already.
func TestDefinitionsMayBeAppliedAgain(t *testing.T) {
	t.Parallel()
	creates := regexp.MustCompile(`(?m)^CREATE .*$`)
	for _, view := range readScripts("views") {
		name := strings.TrimSuffix(path.Base(view.Name), ".sql")
		require.Equal(t, []string{"CREATE OR REPLACE VIEW evictrail_v1." + name + " AS"}, creates.FindAllString(view.SQL, -1), view.Name)
	}
	for _, function := range readScripts("functions") {
		for _, line := range creates.FindAllString(function.SQL, -1) {
			require.True(t, strings.HasPrefix(line, "CREATE OR REPLACE FUNCTION evictrail."), "%s: %s", function.Name, line)
		}
	}
}

// TestUpdateBeginsWhereTheDatabaseIs: an empty database gets tables, one of an older schema the steps that it does not have, and either the views.
func TestUpdateBeginsWhereTheDatabaseIs(t *testing.T) {
	t.Parallel()
	dirs := func(version int64) (out []string, versions []int64) {
		for _, script := range Update(version) {
			if dir := path.Dir(script.Name); len(out) == 0 || out[len(out)-1] != dir {
				out = append(out, dir)
			}
			if script.Version > 0 {
				versions = append(versions, script.Version)
			}
		}
		return out, versions
	}
	of, versions := dirs(0)
	require.Equal(t, []string{"schema", "functions", "views"}, of)
	require.Equal(t, []int64{Version()}, versions)
	of, versions = dirs(Oldest())
	require.Equal(t, []string{"steps", "functions", "views"}, of)
	require.Equal(t, Oldest()+1, versions[0])
	require.Equal(t, Version(), versions[len(versions)-1])
}
