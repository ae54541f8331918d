package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPrefixedLines wants each line of two writers whole, and with its name.
func TestPrefixedLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	shared := &sharedWriter{to: &out}
	a, b := shared.newPrefixedWriter("a"), shared.newPrefixedWriter("b")
	for _, write := range []struct {
		to   interface{ Write([]byte) (int, error) }
		text string
	}{{a, "on"}, {b, "two\nthree\n"}, {a, "e\n"}} {
		_, err := fmt.Fprint(write.to, write.text)
		require.NoError(t, err)
	}
	require.Equal(t, "b: two\nb: three\na: one\n", out.String())
}
