package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestSuggestions mistypes commands, and asks about a node as if it were a VM.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	url := playedURL(t, "c-node-drain")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"lops"}, "evictrail: unknown command \"lops\" for \"evictrail\"; did you mean loops?\nSee 'evictrail --help'.\n"},
		{[]string{"schema", "stauts"}, "evictrail: unknown command \"stauts\" for \"evictrail schema\"; did you mean status?\nSee 'evictrail --help'.\n"},
		{[]string{"nothing-alike"}, "evictrail: unknown command \"nothing-alike\" for \"evictrail\"\nSee 'evictrail --help'.\n"},
		{[]string{"why-not", "worker-1", "--database-url", url}, "evictrail: \"worker-1\": expected NAMESPACE/VM, such as shop/db-1; worker-1 is a node: `evictrail why-not node worker-1`\nSee 'evictrail --help'.\n"},
		{[]string{"why", "worker", "--database-url", url}, "evictrail: \"worker\": expected NAMESPACE/VM, such as shop/db-1\nSee 'evictrail --help'.\n"},
	} {
		code, out, stderr := runCommand(t, c.args...)
		require.Equal(t, exitUsage, code, c.args)
		require.Empty(t, out, c.args)
		require.Equal(t, c.says, stderr, c.args)
	}
}
