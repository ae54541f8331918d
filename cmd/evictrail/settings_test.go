package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
)

// TestSettings reads the fingerprint of an evacuation's settings and looks up what is behind it: in the database, and over HTTP.
func TestSettings(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "m-dual-retry-loop-with-cooldown")
	ask := func(want int, args ...string) (out, stderr string) {
		code, out, stderr := runCommand(t, append(args, "--database-url", url)...)
		require.Equal(t, want, code, "%v: %s", args, stderr)
		return out, stderr
	}
	raw, _ := ask(exitFound, "evacuations", "-o", "json")
	var evacuations []struct{ Policy string }
	require.NoError(t, json.Unmarshal([]byte(raw), &evacuations))
	name := evacuations[0].Policy
	require.Regexp(t, `^kubevirt [0-9a-f]{6}, descheduler [0-9a-f]{6}$`, name)

	out, _ := ask(exitFound, "settings", name)
	for _, text := range []string{
		"m-dual-retry-loop-with-cooldown: " + name, "\nIn force since", "KubeVirt v1.", "\nKubeVirt:\n  ", "\nDescheduler:\n  cooldown:\n    base: ",
	} {
		require.Contains(t, out, text)
	}
	part, _ := ask(exitFound, "settings", name[len("kubevirt "):len("kubevirt 1a2b3c")], "-o", "json")
	var settings []trail.SettingsInForce
	require.NoError(t, json.Unmarshal([]byte(part), &settings))
	require.Equal(t, name, settings[0].Policy)
	now, _ := ask(exitFound, "settings", "--cluster", "m-dual-retry-loop-with-cooldown")
	require.Equal(t, out, now, "they never changed")
	_, stderr := ask(exitNotFound, "settings", "nope")
	require.Contains(t, stderr, `settings "nope"`)
	_, stderr = ask(exitNotFound, "settings", "--cluster", "nope")
	require.Contains(t, stderr, "none were seen so far")

	why, _ := ask(exitFound, "why", vmOfLoop(t, url))
	require.Contains(t, why, "\nSettings in force: "+name+".\nRules: KubeVirt v1.")
}

// vmOfLoop returns the VM of a loop that was recorded.
func vmOfLoop(t *testing.T, url string) string {
	t.Helper()
	found := queryRows[struct{ Namespace, VMI string }](t, url, "SELECT namespace, vmi FROM evictrail_v1.loops WHERE vmi IS NOT NULL LIMIT 1")
	require.NotEmpty(t, found)
	return found[0].Namespace + "/" + found[0].VMI
}
