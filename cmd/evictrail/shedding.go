package main

import (
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/evictrail/evictrail/metrics"
)

// shedding counts what is not answered, as too much is asked, and logs the first of each cause and kind of caller, again after shedQuiet: who
// floods evictrail is not to flood its log.
type shedding struct {
	count func(cause string)
	log   *slog.Logger

	mu   sync.Mutex
	said map[[2]string]time.Time // by cause and kind of caller: when that was logged
}

// shedQuiet is how long the same cause is not logged again for the same kind of caller.
const shedQuiet = time.Hour

func newShedding(count func(cause string), log *slog.Logger) *shedding {
	return &shedding{count: count, log: log, said: map[[2]string]time.Time{}}
}

// shedRequest records that a caller, "user NAME" or "host ADDRESS", was not answered, or not to the end.
func (s *shedding) shedRequest(cause, caller string) {
	s.count(cause)
	kind, _, _ := strings.Cut(caller, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	of := [2]string{cause, kind}
	if last, said := s.said[of]; said && time.Since(last) < shedQuiet {
		return
	}
	s.said[of] = time.Now()
	s.log.Warn("more is asked than is answered", "cause", cause, "caller", caller, "metric", metrics.HTTPShedTotal)
}

// shedConnection records that a connection of a host was refused, or made room.
func (s *shedding) shedConnection(from netip.Addr) {
	s.shedRequest(metrics.ShedConnections, "host "+from.String())
}
