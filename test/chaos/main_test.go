package chaos_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/evictrail/evictrail/store/storetest"
)

var (
	seed = flag.Uint64("chaos.seed", 0, "what chance follows from; 0: another one each time, which is logged")
	long = flag.Bool("chaos.long", false, "do everything as often as the test matrix says, not the short form")
)

// limit is the memory limit of evictrail in the chart, in bytes, of which nine tenths are its GOMEMLIMIT.
const limit = 512 << 20

// TestMain runs few tests side by side: each of them keeps a core busy.
func TestMain(m *testing.M) {
	if err := os.Setenv("GOMEMLIMIT", strconv.Itoa(limit/10*9)); err != nil { // of the programs that tests start
		panic(err)
	}
	if err := flag.Set("test.parallel", "2"); err != nil { // before the command line is read, which may say otherwise
		panic(err)
	}
	storetest.Main(m)
}

// runParallelUnlessLong runs a test that holds evictrail to times by itself in its long form, which is the one that looks at them closely.
func runParallelUnlessLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Parallel()
	}
}

// chooseCount returns how often something is done: in the short form, or in the long one.
func chooseCount(short, all int) int {
	if *long {
		return all
	}
	return short
}

// newSeededRand returns what a test draws from, and logs the seed.
func newSeededRand(t *testing.T) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// awaitCondition waits until something is so. It asks ten times as seldom as asking takes, within bounds: what it waits for needs the machine, too.
func awaitCondition(t *testing.T, within time.Duration, what string, is func() bool) {
	t.Helper()
	const least, most = 5 * time.Millisecond, time.Second
	for deadline := time.Now().Add(within); ; {
		asked := time.Now()
		if is() {
			return
		}
		now := time.Now()
		if now.After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(min(max(least, 10*now.Sub(asked)), most))
	}
}
