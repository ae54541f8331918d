package truth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReadAudit wants each answered eviction of a launcher once: no dry run, no other pod, no other stage, nothing of a line that is being written.
func TestReadAudit(t *testing.T) {
	t.Parallel()
	const event = `{"stage":"STAGE","verb":"create","requestURI":"/api/v1/namespaces/shop/pods/POD/evictionQUERY","requestReceivedTimestamp":"2026-11-24T09:00:00.250000Z",` +
		`"objectRef":{"resource":"pods","subresource":"eviction","namespace":"shop","name":"POD"},"user":{"username":"admin"},"responseStatus":{"code":429}}`
	line := func(stage, pod, query string) string {
		return strings.NewReplacer("STAGE", stage, "POD", pod, "QUERY", query).Replace(event) + "\n"
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	written := line("ResponseComplete", "virt-launcher-db-1-x", "")
	require.NoError(t, os.WriteFile(path, []byte(line("RequestReceived", "virt-launcher-db-1-x", "")+written+line("ResponseComplete", "web-1", "")+
		line("ResponseComplete", "virt-launcher-db-1-x", "?dryRun=All")+written[:40]), 0o600))
	got, err := ReadAudit(path)
	require.NoError(t, err)
	require.Equal(t, []Request{{time.Date(2026, 11, 24, 9, 0, 0, 250_000_000, time.UTC), "shop", "virt-launcher-db-1-x", "admin", 429}}, got)

	require.NoError(t, os.WriteFile(path, []byte("{\n"+written), 0o600))
	_, err = ReadAudit(path)
	require.ErrorContains(t, err, "line 1")
}
