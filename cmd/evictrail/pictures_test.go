package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// TestPagesSayWhatIsOver reads pages of a loop that is over, of a VM whose last move was not needed, and of an evacuation whose next attempt is overdue.
func TestPagesSayWhatIsOver(t *testing.T) {
	t.Parallel()
	storetest.SkipInShort(t)
	address, server := serveSite(t, "b-dual-retry-loop-v1.8")
	db, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()

	vm := fetchPage(t, server, "/vms/demo/vm-d")
	require.Equal(t, http.StatusOK, vm.status)
	require.Contains(t, vm.text, "Needed? Did it help?")
	require.Contains(t, vm.text, "not needed worker-1 was at 40 % at 2026-11-21 00:43:53Z, under its threshold of 50 %; it was last over it at 2026-11-21 00:34:23Z harmed worker-2 was at 40 %")

	loop := queryRows[struct{ ID string }](t, address, "SELECT loop_id::text AS id FROM evictrail_v1.loops WHERE kind = 'dual_retry' AND closed_at IS NOT NULL")
	require.Len(t, loop, 1)
	page := fetchPage(t, server, "/loops/"+loop[0].ID)
	require.Contains(t, page.text, "It was open from 2026-11-21 ")
	require.Contains(t, page.text, "could not leave: attempts")
	for _, now := range []string{"What to do", "kubectl", "cannot leave", "Open since"} {
		require.NotContains(t, page.text, now)
	}
	_, out, errOut := runCommand(t, "loops", "--database-url", address, "-o", "json")
	require.NotContains(t, out, "kubectl", errOut)

	_, err = db.Exec(t.Context(), `
UPDATE evictrail.evacuations AS e
SET ended_at = NULL, outcome = NULL, next_retry_at = c.alive_at - interval '15 hours 46 minutes'
FROM evictrail.clusters AS c
WHERE c.cluster = e.cluster AND e.vmi = 'vm-d' AND e.failed_attempts > 0`)
	require.NoError(t, err)
	require.Contains(t, fetchPage(t, server, "/?cluster=b-dual-retry-loop-v1.8").text, "overdue by 15 h 46 min : due 2026-11-20 ")
	_, out, errOut = runCommand(t, "evacuations", "--vm", "demo/vm-d", "--database-url", address)
	require.Contains(t, out, "OVERDUE", errOut)
	require.Contains(t, out, "15h46m", errOut)
}
