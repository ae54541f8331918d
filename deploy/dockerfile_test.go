package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBaseImagesArePinned: a tag may be another image tomorrow, a digest may not.
func TestBaseImagesArePinned(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	pinned := regexp.MustCompile(`^FROM (--platform=\S+ )?[a-z0-9./:_-]+@sha256:[0-9a-f]{64}( AS \S+)?$`)
	images := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "FROM ") || line == "FROM scratch" { // which is nothing
			continue
		}
		images++
		require.Regexp(t, pinned, line)
	}
	require.Positive(t, images)
}
