package trail_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestLoopsInWords reads every loop of the stories: its name has the right article, and one that is over is in the past tense and
// without a command.
func TestLoopsInWords(t *testing.T) {
	t.Parallel()
	wrongArticle := regexp.MustCompile(`this is (a [aeiou]|an [^aeiou])`)
	present := regexp.MustCompile(`\b(work|tries|evicts|moves|waits|hold|leaves|is to leave|occupy|occupies)\b`)
	over := map[trail.LoopKind]bool{}
	for _, s := range readStories(t) {
		c := trail.DeriveAll(s.observeFacts(), trail.DefaultThresholds(), s.now)
		for _, l := range c.AllLoops() {
			require.NotRegexp(t, wrongArticle, l.Opening(), s.file)
			require.NotEmpty(t, l.Advice, s.file)
			if l.Open() {
				require.Contains(t, l.Advice, "\n  ", "%s: what can be pasted", s.file)
				continue
			}
			over[l.Kind] = true
			require.NotRegexp(t, present, l.Summary, s.file)
			require.NotContains(t, l.Advice, "\n  ", s.file)
			require.True(t, strings.HasPrefix(l.Advice, "This is over"), s.file)
		}
	}
	require.Len(t, over, len(trail.LoopKinds()), "some story ends a loop of each kind")
}
