package api

import (
	"context"
	"crypto/sha256"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// tokenKey stands for a token and what it is to be good for, so that no token is kept.
type tokenKey [sha256.Size]byte

func keyOf(token string, needs right) tokenKey {
	return sha256.Sum256([]byte(strconv.Itoa(int(needs)) + " " + token))
}

// memory remembers what the cluster said of tokens. Who asks about one that somebody else asks about waits for that answer.
type memory struct {
	mu      sync.Mutex
	known   map[tokenKey]remembered
	flights singleflight.Group
}

type remembered struct {
	verdict verdict
	until   time.Time
}

// memoryMost bounds the tokens that are remembered.
const memoryMost = 10_000

// recall gives the verdict about a token, which is asked for where none is remembered. It holds from before the question on.
func (m *memory) recall(key tokenKey, ask func() verdict) verdict {
	if v, found := m.look(key); found {
		return v
	}
	got, _, _ := m.flights.Do(string(key[:]), func() (any, error) {
		if v, found := m.look(key); found { // meanwhile
			return v, nil
		}
		asked := time.Now()
		v := ask()
		m.keep(key, v, asked.Add(v.holds()))
		return v, nil
	})
	return got.(verdict)
}

func (m *memory) look(key tokenKey) (verdict, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, found := m.known[key]
	return r.verdict, found && time.Now().Before(r.until)
}

func (m *memory) keep(key tokenKey, v verdict, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[tokenKey]remembered{}
	}
	if len(m.known) >= memoryMost {
		m.forget()
	}
	m.known[key] = remembered{v, until}
}

// forget makes room: of what holds no more or, where all does, of any one.
func (m *memory) forget() {
	now := time.Now()
	for key, r := range m.known {
		if !now.Before(r.until) {
			delete(m.known, key)
		}
	}
	for key := range m.known {
		if len(m.known) < memoryMost {
			return
		}
		delete(m.known, key)
	}
}

// peers bounds how many tokens that are not remembered come from one address, and from all.
type peers struct {
	mu   sync.Mutex
	one  map[string]*rate.Limiter
	many *rate.Limiter
}

// The bounds of tokens that the cluster is asked about.
const (
	peerRate, peerBurst = 10, 50 // a second from one address, which may be a proxy's; at once
	allRate, allBurst   = 50, 200
	peersMost           = 4096
)

func (p *peers) allow(peer string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.many == nil {
		p.many = rate.NewLimiter(allRate, allBurst)
	}
	if p.one == nil || len(p.one) >= peersMost {
		p.one = map[string]*rate.Limiter{}
	}
	if p.one[peer] == nil {
		p.one[peer] = rate.NewLimiter(peerRate, peerBurst)
	}
	return p.one[peer].Allow() && p.many.Allow()
}

// pace bounds how often the cluster is asked about rights, by all callers together.
type pace struct {
	once  sync.Once
	limit *rate.Limiter
}

// asksPace is how many such questions there may be in a second; twice as many at once.
const asksPace = 500

func (p *pace) wait(ctx context.Context) error {
	p.once.Do(func() { p.limit = rate.NewLimiter(asksPace, 2*asksPace) })
	return p.limit.Wait(ctx)
}
