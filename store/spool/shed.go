package spool

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Cause says why something was lost.
type Cause string

// The causes, as metrics name them.
const (
	LostFull    Cause = "spool_full"
	LostCorrupt Cause = "spool_corrupt"
	LostReject  Cause = "store_reject"
)

// KindUnknown stands for the kind of what cannot be read any more.
const KindUnknown trail.Kind = "unknown"

// The shares of the bound from which on something is left out, and below which there is room again. What is kept free is for what matters
// more.
const (
	shedRepeats = 0.8 // repeats of refused requests: the first said the same
	shedBlocks  = 0.9 // what counters of the descheduler say: the next one says it, too
	shedAll     = 1.0
	roomAgain   = 0.7
)

// repeatsKept bounds the refused requests that are remembered to know their repeats.
const repeatsKept = 50_000

// shedFrom returns the share of the bound from which on a fact is left out.
func (s *Spool) shedFrom(f trail.Fact) float64 {
	switch d := f.Detail.(type) {
	case *trail.RequestDetail:
		if s.isRepeat(f, d) {
			return shedRepeats
		}
	case *trail.BlocksDetail:
		return shedBlocks
	}
	return shedAll
}

// isRepeat reports whether the same was asked before by the same user, and refused for the same reason, as long as the spool remembers. That
// is as long as there is something in it.
func (s *Spool) isRepeat(f trail.Fact, d *trail.RequestDetail) bool {
	switch trail.RequestAnswer(f.Reason) {
	case trail.AnswerAlreadyMarked, trail.AnswerNotMigratable, trail.AnswerTargetPod, trail.AnswerPDB, trail.AnswerNotFound, trail.AnswerError:
	default:
		return false
	}
	key := sha256.Sum256([]byte(strings.Join([]string{f.Subject.String(), string(f.Reason), d.User, d.Agent}, "\x00")))
	if s.refused[key] {
		return true
	}
	if len(s.refused) >= repeatsKept {
		clear(s.refused)
	}
	s.refused[key] = true
	return false
}

// written is a fact with its frame, which has no number yet.
type written struct {
	trail.Fact
	frame frame
}

// encodeFacts returns the frames of facts, and those facts that have none, such as those with a number that JSON cannot hold, with the error of the first.
func encodeFacts(facts []trail.Fact) (out []written, refused []trail.Fact, err error) {
	out = make([]written, 0, len(facts))
	for _, f := range facts {
		text, writeErr := trail.WriteFact(f)
		key := stateKey(f)
		if writeErr == nil && (len(text) > payloadMax || len(key) > keyMax) {
			writeErr = fmt.Errorf("write %s %s: %w: it is too long", f.Kind, f.ID, trail.ErrRefused)
		}
		if writeErr != nil {
			refused, err = append(refused, f), cmp.Or(err, writeErr)
			continue
		}
		out = append(out, written{f, frame{form: formFact, key: key, payload: text}})
	}
	return out, refused, err
}

// admitFacts parts facts into those for which there is room and those that are lost.
func (s *Spool) admitFacts(facts []written) (kept []written, lost []trail.Fact) {
	bytes := s.bytesFrom(s.currentMark().At)
	for _, f := range facts {
		if from := s.shedFrom(f.Fact); float64(bytes) >= from*float64(s.Size) {
			lost = append(lost, f.Fact)
			continue
		}
		bytes += f.frame.size()
		kept = append(kept, f)
	}
	return kept, lost
}

// addLost notes what found no room. What was recorded of an object and is lost must be recorded again: tail is the number of the next fact.
func (k *known) addLost(lost []trail.Fact, tail uint64) {
	for _, f := range lost {
		k.addLoss(f.Source(), trail.ReasonOverflow, f.ObservedAt, f.ObservedAt, f.Kind, 1)
		if f.Object.Kind.Remembered() {
			k.addDoubt(tail)
		}
	}
}

// reportLost counts what found no room.
func (s *Spool) reportLost(lost []trail.Fact) {
	for _, f := range lost {
		s.Lost(f.Kind, LostFull, 1)
		s.resumed = s.resumed && !f.Object.Kind.Remembered()
	}
	if len(lost) > 0 && !s.full {
		s.full = true
		s.Log.Error("spool is filling up: what matters least is left out, counted, and recorded as a gap", "path", s.path, "count", len(lost), "waiting", s.currentMark().countFacts())
	}
}

// addLoss adds to what is to be recorded as a gap.
func (k *known) addLoss(source string, cause trail.Reason, since, until time.Time, kind trail.Kind, n int) {
	if k.Losses == nil {
		k.Losses = trail.Losses{}
	}
	k.Losses.Add(source, cause, since, until, kind, n)
}

// lossGaps returns the gaps of what was lost, once there is room for them and for what comes after, and removes the losses from what is known.
func (s *Spool) lossGaps(k *known) []written {
	if len(k.Losses) == 0 || float64(s.bytesFrom(s.currentMark().At)) >= roomAgain*float64(s.Size) {
		return nil
	}
	gaps, _, _ := encodeFacts(k.Losses.Gaps(s.Cluster, s.Clock()))
	k.Losses = nil
	return gaps
}

// endLosses notes that losses are recorded: what is seen of their sources is whole from now on.
func (s *Spool) endLosses(losses trail.Losses) {
	for _, l := range losses {
		s.whole[l.Source] = s.Clock()
	}
	s.full = false
}

// withoutLosses removes from a sign what it must not say: a source of which something is missing was not seen without a break.
func (s *Spool) withoutLosses(sign trail.Sign) trail.Sign {
	out := trail.Sign{At: sign.At}
	for _, w := range sign.Watching {
		if s.known.Losses.Of(w.Source) {
			continue
		}
		if whole := s.whole[w.Source]; whole.After(w.Since) {
			w.Since = whole
		}
		out.Watching = append(out.Watching, w)
	}
	return out
}
