package trail_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

func TestMissingSignals(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{
		"v1.2.2":      {"v1.3.0", "v1.5.0", "v1.6.1", "v1.7.0", "v1.7.0", "v1.7.0"},
		"v1.4.1":      {"v1.5.0", "v1.6.1", "v1.7.0", "v1.7.0", "v1.7.0"},
		"v1.6.0":      {"v1.6.1", "v1.7.0", "v1.7.0", "v1.7.0"},
		"v1.6.1":      {"v1.7.0", "v1.7.0", "v1.7.0"},
		"v1.6.12":     {"v1.7.0", "v1.7.0", "v1.7.0"},
		"v1.7.0-rc.1": {"v1.7.0", "v1.7.0", "v1.7.0"},
		"v1.7.0":      nil,
		"v1.8.4":      nil,
		"v1.10.0":     nil,
		"v2.0.0":      nil,
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			missing, known := trail.KubeVirtSettings{Version: version}.Missing()
			require.True(t, known)
			var since []string
			for _, m := range missing {
				since = append(since, m.Since)
				require.NotEmpty(t, m.Without)
			}
			require.Equal(t, want, since)
			mode := trail.KubeVirtSettings{Version: version}.AnnotationMode()
			require.Equal(t, len(want) > 3, mode == trail.AnnotatedByAttempt, "it says the same as AnnotationMode")
		})
	}
	_, known := trail.KubeVirtSettings{Version: "devel"}.Missing()
	require.False(t, known)
	require.True(t, trail.KubeVirtSettings{Version: "v1.9.0"}.MergesAborts())
	require.False(t, trail.KubeVirtSettings{Version: "v1.8.4"}.MergesAborts())
	require.True(t, trail.Reseeds("4.21.3"))
	require.False(t, trail.Reseeds("v0.34.0"))
}
