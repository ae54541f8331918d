package browser_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/ports"
)

// TestLive has pages open while facts come in, while the server is away, and when it is there again: they follow without being loaded again.
func TestLive(t *testing.T) {
	t.Parallel()
	url, address, recordings := storetest.NewURL(t), ports.Free(t), t.TempDir()
	for _, name := range []string{"a-descheduler-eviction-success", "d-external-strategy"} {
		require.NoError(t, os.CopyFS(filepath.Join(recordings, name), os.DirFS(filepath.Join(root, "testdata/recordings", name))))
	}
	serve := func() *demo {
		d, err := startDemo("--listen", address, "--database-url", url, "--recordings", recordings)
		require.NoError(t, err)
		return d
	}
	play := func(name, cluster string, args ...string) *exec.Cmd {
		args = append([]string{"play", filepath.Join(root, "testdata/recordings", name), "--cluster", cluster, "--database-url", url}, args...)
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		return cmd
	}
	server := serve()
	t.Cleanup(func() { server.stop() })

	front := newTab(t, "http://"+address, desk)
	front.openPage("/")
	front.markPage()
	front.awaitCondition(`document.querySelector("#live").textContent.startsWith("Nothing is being recorded now.")`) // recordings alone
	playing := play("b-dual-retry-loop-v1.8", "c1", "--speed", "100")
	const hasCard = `[...document.querySelectorAll(".fleet td:first-child")].some(title => title.textContent === %q)`
	const vmPage = "/vms/demo/vm-d?cluster=c1"
	require.Eventually(t, func() bool {
		answer, err := http.Get("http://" + address + vmPage)
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode == http.StatusOK
	}, patience, 50*time.Millisecond)
	vm := newTab(t, "http://"+address, desk)
	vm.openPage(vmPage)
	vm.markPage()
	rows := evaluateJS[int](vm, `document.querySelectorAll("main tr").length`)
	front.awaitCondition(hasCard, "c1")
	front.awaitCondition(`document.querySelector("#live").textContent.startsWith("Live: changed at")`)
	require.NoError(t, playing.Wait())
	vm.awaitCondition(`document.querySelectorAll("main tr").length > %d && document.querySelector("main").textContent.includes("Attempt 6")`, rows)
	vm.awaitCondition(`document.querySelector("#live").textContent.startsWith("Live: changed at")`)
	require.Empty(t, evaluateJS[[]string](vm, misplaced+`(1280)`), "what came in lies where it should")

	for _, b := range []*tab{front, vm} {
		b.expectTrouble("net::ERR_", "/api/v1/stream", "/recorder")
	}
	server.stop()
	for _, b := range []*tab{front, vm} {
		b.awaitCondition(`document.querySelector("#live").textContent.startsWith("Not live")`)
	}
	require.NoError(t, play("e-user-migrations", "c2").Wait())
	server = serve()
	for _, b := range []*tab{front, vm} {
		b.awaitCondition(`/^(Live|Nothing is being recorded)/.test(document.querySelector("#live").textContent)`)
	}
	front.awaitCondition(hasCard, "c2")
	for _, b := range []*tab{front, vm} {
		require.True(t, evaluateJS[bool](b, `window.stillHere === true`), "%s was loaded again", b.currentURL())
	}
}

// markPage marks the page, to see later that it was not loaded again.
func (b *tab) markPage() {
	b.Helper()
	evaluateJS[bool](b, `window.stillHere = true`)
}
