package api

import (
	"errors"
	"net/http"
	"os"
	"time"
)

// How slowly an answer may be read. A large one takes its time, as long as its reader goes on reading.
const (
	writeChunk = 64 << 10         // bytes that are written at once
	writeStall = 10 * time.Second // for such a chunk, or what is flushed
	writeGrace = 30 * time.Second // for a whole answer, beside
	writePace  = 64 << 10         // bytes of it a second
)

// cutOffSlowReaders cuts off who stalls while reading an answer: else each such connection would hold its answer for ever.
func (s Server) cutOffSlowReaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &pacedWriter{ResponseWriter: w, out: http.NewResponseController(w)}
		if r.ProtoMajor == 1 { // the deadline of the answer before, on this connection, is no longer meant
			_ = p.out.SetWriteDeadline(time.Time{})
		}
		defer func() {
			if p.stalled && s.Shed != nil {
				s.Shed(ShedSlow, callerOf(r.Context()))
			}
		}()
		next.ServeHTTP(p, r)
		p.extendDeadline(0) // for what net/http still holds
	})
}

// pacedWriter writes in chunks, each before a deadline of its own.
type pacedWriter struct {
	http.ResponseWriter
	out       *http.ResponseController
	began     time.Time // of the first byte; zero: there was none
	sent      int       // bytes
	streaming bool      // it was flushed: it may last, but each part is to be read in time
	stalled   bool
}

// extendDeadline sets the deadline for the next so many bytes. A writer that has no deadlines, as in tests, needs none.
func (w *pacedWriter) extendDeadline(n int) {
	now := time.Now()
	if w.began.IsZero() {
		w.began = now
	}
	w.sent += n
	deadline := now.Add(writeStall)
	if whole := w.began.Add(writeGrace + time.Duration(w.sent)*time.Second/writePace); !w.streaming && whole.Before(deadline) {
		deadline = whole
	}
	_ = w.out.SetWriteDeadline(deadline)
}

// WriteHeader implements http.ResponseWriter.
func (w *pacedWriter) WriteHeader(status int) {
	w.extendDeadline(0)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *pacedWriter) Write(p []byte) (written int, err error) {
	for {
		chunk := p[written:min(len(p), written+writeChunk)]
		w.extendDeadline(len(chunk))
		n, err := w.ResponseWriter.Write(chunk)
		written += n
		if err != nil {
			w.stalled = w.stalled || errors.Is(err, os.ErrDeadlineExceeded)
			return written, err
		}
		if written >= len(p) {
			return written, nil
		}
	}
}

// FlushError is for http.ResponseController.
func (w *pacedWriter) FlushError() error {
	w.streaming = true
	w.extendDeadline(0)
	err := w.out.Flush()
	w.stalled = w.stalled || errors.Is(err, os.ErrDeadlineExceeded)
	return err
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
