package api

import (
	"crypto/sha256"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// tokenKey stands for a token and what it is to be good for, so that no token is kept.
type tokenKey [sha256.Size]byte

func keyOf(token string, needs right) tokenKey {
	return sha256.Sum256([]byte(strconv.Itoa(int(needs)) + " " + token))
}

// verdicts remembers what the cluster said of tokens. Who asks about one that is being asked about waits for that answer.
//
// A verdict holds for Gate.hold from before it was asked for, and never longer: a right that is taken away is gone by then. Before that it
// is renewed in the background, from the first request on that comes in the last part of its time. When that part begins is drawn for each
// verdict, so that callers who came together do not go on being asked about together.
type verdicts struct {
	mu       sync.Mutex
	admitted map[tokenKey]remembered // for knownFor
	refused  map[tokenKey]remembered // while they hold, apart from those: junk drives out no caller who is known
	flights  singleflight.Group
}

// remembered is a verdict and how long it may be relied on.
type remembered struct {
	verdict
	asked, renew, until time.Time // renew is not after until
}

// verdictsMost bounds the tokens that are remembered, of each sort; knownFor is for how long a token is known after it was last admitted.
const (
	verdictsMost = 10_000
	knownFor     = time.Hour
)

// findOrAsk returns the verdict about a token, which is asked for where none holds. Known is whether the token was admitted within the last
// knownFor.
func (m *verdicts) findOrAsk(key tokenKey, hold time.Duration, ask func(known bool) verdict) verdict {
	fly := func() (any, error) {
		r, known := m.findRemembered(key)
		asked := time.Now()
		if asked.Before(r.renew) { // answered while this one waited
			return r.verdict, nil
		}
		v := ask(known)
		m.rememberVerdict(key, v, asked, hold)
		return v, nil
	}
	r, _ := m.findRemembered(key)
	now := time.Now()
	if !now.Before(r.until) {
		got, _, _ := m.flights.Do(string(key[:]), fly)
		return got.(verdict)
	}
	if !now.Before(r.renew) {
		m.flights.DoChan(string(key[:]), fly)
	}
	return r.verdict
}

// findRemembered returns what is remembered of a token, if only that it holds no more, and whether the token is known.
func (m *verdicts) findRemembered(key tokenKey) (r remembered, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	admitted, found := m.admitted[key]
	known = found && now.Before(admitted.asked.Add(knownFor))
	if refused, found := m.refused[key]; found && now.Before(refused.until) && !now.Before(admitted.until) {
		return refused, known
	}
	return admitted, known
}

// rememberVerdict remembers a verdict. One that says nothing of the token leaves an admitted one in force for the rest of its time.
func (m *verdicts) rememberVerdict(key tokenKey, v verdict, asked time.Time, hold time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admitted == nil {
		m.admitted, m.refused = map[tokenKey]remembered{}, map[tokenKey]remembered{}
	}
	switch v.refused {
	case "":
		delete(m.refused, key)
		makeRoom(m.admitted, func(r remembered) time.Time { return r.asked.Add(knownFor) })
		m.admitted[key] = remembered{v, asked, asked.Add(hold/2 + rand.N(hold/3+1)), asked.Add(hold)}
		return
	case DeniedNoAnswer, DeniedTooOften:
		if r, found := m.admitted[key]; found {
			if r.renew = time.Now().Add(failureHolds); r.renew.After(r.until) {
				r.renew = r.until
			}
			m.admitted[key] = r
		}
	default:
		delete(m.admitted, key)
	}
	if holds := v.refusalTTL(); holds > 0 {
		makeRoom(m.refused, func(r remembered) time.Time { return r.until })
		m.refused[key] = remembered{v, asked, asked.Add(holds), asked.Add(holds)}
	}
}

// makeRoom makes room for one more: it forgets those whose time is over or, where there are none, any.
func makeRoom(of map[tokenKey]remembered, over func(remembered) time.Time) {
	if len(of) < verdictsMost {
		return
	}
	now := time.Now()
	for key, r := range of {
		if !now.Before(over(r)) {
			delete(of, key)
		}
	}
	for key := range of {
		if len(of) < verdictsMost {
			return
		}
		delete(of, key)
	}
}
