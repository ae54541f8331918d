package tracker

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecent(t *testing.T) {
	t.Parallel()
	var r Recent
	for _, n := range []int{5, 100, 7, 30, 9, 12, 11, 10, 8, 6} {
		r = r.With(Latest{Version: strconv.Itoa(n), UID: "u" + strconv.Itoa(n)})
	}
	versions := func() (out []string) {
		for _, l := range r {
			out = append(out, l.Version)
		}
		return out
	}
	require.Equal(t, []string{"100", "30", "12", "11", "10", "9", "8", "7"}, versions(), "the last eight, as numbers")
	r = r.With(Latest{Version: "40", UID: "u9"})
	require.Equal(t, []string{"100", "40", "30", "12", "11", "10", "8", "7"}, versions(), "one of them changed again")
	r = r.Without("u100").Without("nobody")
	require.Equal(t, []string{"40", "30", "12", "11", "10", "8", "7"}, versions())
}
