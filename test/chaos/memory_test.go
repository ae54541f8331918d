package chaos_test

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/stretchr/testify/require"
)

// memoryGroups are where memory cgroups are made, with the file that limits one: of version 1, and of version 2.
var memoryGroups = []struct{ parent, limit string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	{"/sys/fs/cgroup", "memory.max"},
}

// limitMemory has evictrail run in a memory cgroup with the limit of the chart, whose kernel ends what exceeds it. Where this machine lets a
// test make none, requireBelowMemoryLimit alone looks at what evictrail holds. Call it before start.
func (e *evictrail) limitMemory() {
	e.t.Helper()
	for _, g := range memoryGroups {
		dir, err := os.MkdirTemp(g.parent, "evictrail-")
		if err != nil {
			continue
		}
		e.t.Cleanup(func() { _ = os.Remove(dir) }) // after the process has ended, whose cleanup is later than this one
		if err := os.WriteFile(filepath.Join(dir, g.limit), []byte(strconv.Itoa(limit)), 0o644); err != nil {
			continue
		}
		e.args = append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, dir, e.program}, e.args...)
		e.program = "sh"
		e.t.Logf("memory is limited to %d MiB by %s", limit>>20, dir)
		return
	}
	e.t.Log("no memory cgroup can be made here: what evictrail holds is looked at every 50 ms")
}

// requireBelowMemoryLimit requires that evictrail runs, and never held more memory of its own than the chart's limit.
func (e *evictrail) requireBelowMemoryLimit() {
	e.t.Helper()
	require.True(e.t, e.Running(), "evictrail was ended, at %d MiB: out of memory?", e.peakMemory()>>20)
	require.Less(e.t, e.peakMemory(), int64(limit), "bytes of memory")
}
