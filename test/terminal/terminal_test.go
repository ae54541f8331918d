package terminal

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// session is a command on a terminal.
type session struct {
	tty *os.File
	cmd *exec.Cmd

	mu  sync.Mutex
	out strings.Builder
}

// startSession starts evictrail on a terminal of that many columns.
func startSession(t *testing.T, columns uint16, environment []string, args ...string) *session {
	t.Helper()
	binary, err := build.Evictrail()
	require.NoError(t, err)
	s := &session{cmd: exec.CommandContext(t.Context(), binary, args...)}
	s.cmd.Env = append([]string{"TERM=xterm-256color", "HOME=" + t.TempDir()}, environment...)
	s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: columns})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.tty.Close() })
	go s.readOutput()
	return s
}

func (s *session) readOutput() {
	buffer := make([]byte, 1<<12)
	for {
		n, err := s.tty.Read(buffer)
		s.mu.Lock()
		s.out.Write(buffer[:n])
		s.mu.Unlock()
		if err != nil { // EIO when the command has ended
			return
		}
	}
}

func (s *session) read() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// press types keys and waits until the terminal shows a text that it did not show before.
func (s *session) press(t *testing.T, keys, shows string) {
	t.Helper()
	before := len(s.read())
	_, err := io.WriteString(s.tty, keys)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Contains(s.read()[before:], shows) }, 30*time.Second, 50*time.Millisecond, "after %q: %q", keys, s.read()[before:])
}

// wait returns the exit status.
func (s *session) wait(t *testing.T) int {
	t.Helper()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// playRecording returns a database with a recording in it.
func playRecording(t *testing.T, name string) string {
	t.Helper()
	binary, err := build.Evictrail()
	require.NoError(t, err)
	url := storetest.NewURL(t)
	out, err := exec.CommandContext(t.Context(), binary, "play", filepath.Join(build.Root(), "testdata/recordings", name), "--database-url", url).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return url
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[a-zA-Z]`)

// TestOnATerminal looks at lists and at top as a person does.
func TestOnATerminal(t *testing.T) {
	t.Parallel()
	url := playRecording(t, "k-blocked-slot")
	for name, test := range map[string]func(*testing.T, string){"lists": listsFit, "watch": watchEnds, "top": topAnswers} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, url)
		})
	}
}

// listsFit wants no line longer than the terminal, colours for what is open, and neither where a person asked for none.
func listsFit(t *testing.T, url string) {
	t.Helper()
	for _, columns := range []uint16{80, 200} {
		s := startSession(t, columns, nil, "loops", "--database-url", url)
		require.Zero(t, s.wait(t))
		require.Eventually(t, func() bool { return strings.Contains(s.read(), "\x1b[1;31mdual") }, 5*time.Second, 50*time.Millisecond, "%q", s.read())
		for line := range strings.Lines(escapes.ReplaceAllString(s.read(), "")) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\r\n")), int(columns), s.read())
		}
	}
	s := startSession(t, 80, []string{"NO_COLOR=1", "COLUMNS=500"}, "loops", "--database-url", url)
	require.Zero(t, s.wait(t))
	require.Eventually(t, func() bool { return strings.Count(s.read(), "\n") == 3 }, 5*time.Second, 50*time.Millisecond, "%q", s.read())
	require.NotContains(t, s.read(), "\x1b")
}

// watchEnds ends a list that is watched with Ctrl-C.
func watchEnds(t *testing.T, url string) {
	t.Helper()
	s := startSession(t, 80, nil, "loops", "--open", "--watch", "--every", "200ms", "--database-url", url)
	s.press(t, "", "Ctrl-C ends.")
	require.Eventually(t, func() bool { return strings.Count(s.read(), "\x1b[H\x1b[2J") >= 3 }, 30*time.Second, 50*time.Millisecond)
	_, err := io.WriteString(s.tty, "\x03")
	require.NoError(t, err)
	require.Zero(t, s.wait(t))
}

// topAnswers asks why at the keyboard, on a terminal that becomes wider, and wants the terminal back as it was.
func topAnswers(t *testing.T, url string) {
	t.Helper()
	s := startSession(t, 80, nil, "top", "--every", "300ms", "--database-url", url)
	s.press(t, "", "1 problem in 1 of 1 cluster: k-blocked-slot 1")
	s.press(t, "/nothing", "/nothing_")
	s.press(t, "\x1b", "> k-blocked-slot")
	require.NoError(t, pty.Setsize(s.tty, &pty.Winsize{Rows: 24, Cols: 200}))
	s.press(t, "", "Two controllers work")
	s.press(t, "\r", "the descheduler asked to evict it")
	s.press(t, "G", "evictrail why demo/nbr-2")
	s.press(t, "q", "> k-blocked-slot")
	_, err := io.WriteString(s.tty, "q")
	require.NoError(t, err)
	require.Zero(t, s.wait(t))
	require.Eventually(t, func() bool { return strings.HasSuffix(s.read(), "\x1b[?25h\x1b[?1049l") }, 5*time.Second, 50*time.Millisecond)

	s = startSession(t, 80, nil, "top", "--database-url", url)
	s.press(t, "", "1 problem")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, s.wait(t))
}
