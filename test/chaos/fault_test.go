package chaos_test

import (
	"math/rand/v2"
	"sync"
	"time"
)

// How a commit fails. Only of the first does evictrail not know what became of it, and yet it must do the same of all.
const (
	replyLost     = "COMMIT done, its reply lost"
	requestLost   = "COMMIT lost on its way"
	serialization = "serialization failure"
	deadlock      = "deadlock"
	standby       = "a standby now"
	shutdown      = "server shut down"
)

// codes are the errors that Postgres answers with.
//
// Source: https://www.postgresql.org/docs/current/errcodes-appendix.html.
var codes = map[string]string{serialization: "40001", deadlock: "40P01", standby: "25006", shutdown: "57P01"}

// failingCommits fails commits of transactions that store facts, each in a way that chance chooses.
type failingCommits struct {
	share  float64 // of commits that fail
	ways   []string
	most   int            // commits that may fail; then all is well
	failed map[string]int // commits that failed, by way

	mu      sync.Mutex
	chance  *rand.Rand
	sent    map[string]int   // errors sent to evictrail, by way: an answer that evictrail no longer waits for is not sent
	storing map[*link]bool   // a transaction that has stored facts
	chosen  map[*link]string // how the commit that was asked for fails
	busy    int              // commits of facts that were asked for
}

func newFailingCommits(chance *rand.Rand, share float64, most int, ways ...string) *failingCommits {
	return &failingCommits{
		share: share, ways: ways, most: most, chance: chance, failed: map[string]int{}, sent: map[string]int{}, storing: map[*link]bool{}, chosen: map[*link]string{},
	}
}

// countCommits returns how many commits of facts were asked for.
func (f *failingCommits) countCommits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy
}

// errorsSent returns how many commits were answered with the error of one of some ways.
func (f *failingCommits) errorsSent(ways ...string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, way := range ways {
		n += f.sent[way]
	}
	return n
}

func (f *failingCommits) filterMessage(m *message) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case m.isRequestFor(begins):
		f.storing[m.link] = false
	case m.isRequestFor(storesFacts):
		f.storing[m.link] = true
	case m.isRequestFor("rollback"):
		f.storing[m.link] = false
	case m.isRequestFor("commit") && f.storing[m.link]:
		f.storing[m.link] = false // what the connection does next may be a reader's
		return f.handleRequest(m)
	case m.isCompletionOf("commit") || m.reply && m.kind == kindError && f.chosen[m.link] != "":
		return f.handleReply(m)
	}
	return true
}

// begins is part of what a transaction of a writer begins with, storesFacts of the statement by which facts are stored.
const (
	begins      = "set_config('idle_in_transaction_session_timeout'"
	storesFacts = "INSERT INTO evictrail.events"
)

// handleRequest decides how a commit fails, with the lock held.
func (f *failingCommits) handleRequest(m *message) bool {
	f.busy++
	total := 0
	for _, n := range f.failed {
		total += n
	}
	if total >= f.most || f.chance.Float64() >= f.share {
		return true
	}
	way := f.ways[f.chance.IntN(len(f.ways))]
	f.failed[way]++
	switch {
	case way == requestLost:
		m.link.cut()
		return false
	case codes[way] != "" && m.kind == kindBind: // in the middle of what is sent together
		m.raw = messageOf(kindBind, "", "no statement", "", "", "", "", "", "") // without values
	case codes[way] != "":
		m.raw = messageOf(kindQuery, "rollback")
	}
	f.chosen[m.link] = way
	return true
}

// handleReply has a commit fail as was decided, with the lock held.
func (f *failingCommits) handleReply(m *message) bool {
	way := f.chosen[m.link]
	delete(f.chosen, m.link)
	switch way {
	case "":
		return true
	case replyLost:
		m.link.cut()
		return false
	case shutdown:
		_, _ = m.link.client.Write(errorOf("FATAL", codes[way], way))
		m.link.cut()
		return false
	}
	f.sent[way]++
	m.raw = errorOf("ERROR", codes[way], way)
	return true
}

// errorOf makes an error as Postgres sends it.
func errorOf(severity, code, text string) []byte {
	return messageOf(kindError, "S"+severity, "V"+severity, "C"+code, "M"+text, "")
}

// slowCommits has each commit take its time: its reply waits, as a transaction that waits for its COMMIT is one that does nothing, and ends for that.
func slowCommits(wait time.Duration) fault {
	return func(m *message) bool {
		if m.isCompletionOf("commit") {
			time.Sleep(wait)
		}
		return true
	}
}
