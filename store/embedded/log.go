package embedded

import (
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	maxLogSize = 16 << 20 // bytes; a longer log is put aside at the next start
	tailSize   = 4 << 10  // bytes of a log that an error shows at most
	tailLines  = 12
)

// openLog opens the server's log for appending and returns its size in bytes. The server inherits the file: a pipe to us
// would break when we die first.
func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, fmt.Errorf("put server log aside: %w", err)
		}
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open server log: %w", err)
	}
	size, err := log.Seek(0, io.SeekEnd)
	return log, size, err
}

// readLogTail is the end of a log, of what was written after the first bytes.
func readLogTail(path string, after int64) string {
	log, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = log.Close() }()
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	from := max(after, size-tailSize)
	text, err := io.ReadAll(io.NewSectionReader(log, from, size-from))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text))
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
