package leaktest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// leaves is how long goroutines have to end once all tests are over.
const leaves = 5 * time.Second

// ours begins the names of our functions, and of nobody else's.
const ours = "github.com/evictrail/evictrail/"

// Main runs the tests of a package that has nothing else to do before or after them. Call it from TestMain.
func Main(m *testing.M) { os.Exit(Code(m.Run())) }

// Code returns the exit code of tests that are over with a code and have cleaned up: theirs, or 1 where they passed and a goroutine stays behind.
func Code(code int) int {
	if code == 0 && countLeaks(os.Stderr, leaves) > 0 {
		return 1
	}
	return code
}

// countLeaks waits until no goroutine of ours is left but the one that asks, or for so long, and writes what those do that stay. It returns how many do.
func countLeaks(out io.Writer, most time.Duration) int {
	for deadline := time.Now().Add(most); ; time.Sleep(10 * time.Millisecond) {
		stay := listOtherStacks()
		if len(stay) > 0 && time.Now().Before(deadline) {
			continue
		}
		for _, stack := range stay {
			_, _ = fmt.Fprintf(out, "left behind: %s\n\n", stack)
		}
		return len(stay)
	}
}

// listOtherStacks returns the stacks of our goroutines but for the one that asks, which comes first.
func listOtherStacks() []string {
	buf := make([]byte, 4<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	var out []string
	for _, stack := range all[1:] {
		if strings.Contains(stack, ours) {
			out = append(out, stack)
		}
	}
	return out
}
