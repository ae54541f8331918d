package spool

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain runs the tests, and wants no goroutine of theirs or of a spool to be left: a spool has none of its own.
func TestMain(m *testing.M) {
	if os.Getenv(onSmallDisk) != "" {
		os.Exit(smallDisk())
	}
	code := m.Run()
	if left := leftBehind(); code == 0 && left != "" {
		fmt.Println("goroutines are left behind:\n" + left)
		code = 1
	}
	os.Exit(code)
}

// leftBehind gives the goroutines of this package that do not end.
func leftBehind() (left string) {
	for range 100 {
		buf := make([]byte, 1<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		left = ""
		for _, s := range stacks[1:] {
			if strings.Contains(s, "store/spool") || strings.Contains(s, "bbolt") {
				left += s + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond) // real goroutines end when they do
	}
	return left
}
