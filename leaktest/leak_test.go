package leaktest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStaysBehind looks while one goroutine stays, and then when it has ended. Nothing runs beside it: that would stay, too.
func TestStaysBehind(t *testing.T) { //nolint:paralleltest // a test beside it would stay behind, too
	var out strings.Builder
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		<-end
	}()
	require.Equal(t, 1, countLeaks(&out, time.Millisecond), out.String())
	require.Contains(t, out.String(), "leaktest.TestStaysBehind.func1")
	close(end)
	<-ended
	out.Reset()
	require.Zero(t, countLeaks(&out, time.Minute), out.String())
}
