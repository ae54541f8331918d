package storetest

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"
)

// leaves is how long goroutines have to end once all tests are over.
const leaves = 5 * time.Second

// ours begins the names of our functions, and of nobody else's.
const ours = "github.com/evictrail/evictrail/"

// leaked waits until no goroutine of ours is left but the one that asks, and writes what those do that stay. It tells how many do.
func leaked(out io.Writer) int {
	for deadline := time.Now().Add(leaves); ; time.Sleep(10 * time.Millisecond) {
		left := others()
		if len(left) > 0 && time.Now().Before(deadline) {
			continue
		}
		for _, stack := range left {
			_, _ = fmt.Fprintf(out, "left behind: %s\n\n", stack)
		}
		return len(left)
	}
}

// others gives the stacks of our goroutines but for the one that asks, which comes first.
func others() []string {
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
