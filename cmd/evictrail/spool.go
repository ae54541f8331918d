package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/store/embedded"
	"github.com/evictrail/evictrail/store/spool"
	"github.com/evictrail/evictrail/trail"
)

// spoolFlags say where facts wait until the database has them.
type spoolFlags struct {
	dir  string
	size byteSize
}

// leastSpool is room for some thousand facts: less would be filling up all the time.
const leastSpool = 16 << 20

func (f *spoolFlags) addFlags(cmd *cobra.Command) {
	f.size = spool.DefaultSize
	addSpoolDir(cmd, &f.dir)
	cmd.Flags().Var(&f.size, "spool-size", "at most so many `bytes` of facts wait, such as 512MiB or 20GiB; their files may be an eighth larger, and hold the states of objects beside")
	_ = cmd.RegisterFlagCompletionFunc("spool-size", cobra.FixedCompletions([]string{"1GiB", "4GiB", "20GiB"}, cobra.ShellCompDirectiveNoFileComp))
}

func addSpoolDir(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "spool-dir", filepath.Join(embedded.DefaultDir(), "spool"), "`directory` in which facts wait until the database has them, in a directory for each cluster")
	_ = cmd.MarkFlagDirname("spool-dir")
}

func (f *spoolFlags) checkFlags() error {
	if f.dir == "" {
		return usageErrorf("spool-dir: must not be empty")
	}
	if f.size < leastSpool {
		return usageErrorf("spool-size %s: expected at least %s", f.size, byteSize(leastSpool))
	}
	return nil
}

// openSpool opens the spool of a cluster.
func (f *spoolFlags) openSpool(cluster string, m *metrics.Metrics, log *slog.Logger) (*spool.Spool, error) {
	s, err := spool.Open(spool.Options{
		Dir: f.dir, Cluster: cluster, Size: int64(f.size), Log: log, Clock: nowUTC,
		Lost: func(kind trail.Kind, cause spool.Cause, n int) {
			m.Lost.WithLabelValues(string(kind), string(cause)).Add(float64(n))
		},
		Synced: func(took time.Duration) { m.SpoolFsync.WithLabelValues().Observe(took.Seconds()) },
	})
	if errors.Is(err, spool.ErrHeld) {
		return nil, fmt.Errorf("%w: stop that one, or give this one a directory of its own with --spool-dir", err)
	}
	return s, err
}

// byteSize is a number of bytes as people write it.
type byteSize int64

// sizeUnits are the units of byteSize, the larger ones of each sort first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"B", 1}, {"", 1},
}

// Set reads a number of bytes.
func (b *byteSize) Set(text string) error {
	for _, unit := range sizeUnits {
		number, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/unit.bytes {
			break
		}
		*b = byteSize(n * unit.bytes)
		return nil
	}
	return errors.New("expected a number of bytes, such as 512MiB, 4GiB or 5000000000")
}

// String writes it in the largest binary unit without a rest.
func (b byteSize) String() string {
	for _, unit := range sizeUnits[:4] {
		if int64(b) >= unit.bytes && int64(b)%unit.bytes == 0 {
			return strconv.FormatInt(int64(b)/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Type names what help shows.
func (b byteSize) Type() string { return "bytes" }
