package main

import (
	"bytes"
	"io"
	"sync"
)

// sharedWriter is where several scenarios print at once, each line whole.
type sharedWriter struct {
	mu sync.Mutex
	to io.Writer
}

// newPrefixedWriter returns a writer whose lines begin with a name.
func (w *sharedWriter) newPrefixedWriter(name string) io.Writer {
	return &prefixedWriter{shared: w, prefix: name + ": "}
}

// prefixedWriter is safe for concurrent use.
type prefixedWriter struct {
	shared *sharedWriter
	prefix string
	line   []byte // what was written after the last end of a line
}

func (w *prefixedWriter) Write(text []byte) (int, error) {
	w.shared.mu.Lock()
	defer w.shared.mu.Unlock()
	w.line = append(w.line, text...)
	for {
		end := bytes.IndexByte(w.line, '\n')
		if end < 0 {
			return len(text), nil
		}
		if _, err := io.WriteString(w.shared.to, w.prefix+string(w.line[:end+1])); err != nil {
			return 0, err
		}
		w.line = w.line[end+1:]
	}
}
