package api

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// budgets bounds how often the cluster is asked about callers, so that nobody who sends junk takes the answers of others:
//
//   - who is known, because their token was admitted within knownFor, is asked about again from a budget of their own, which their number
//     cannot exhaust;
//   - an unknown token costs one of its host's share; a host from which nobody was admitted within knownFor shares further with its network,
//     and with all hosts of this sort.
//
// A host is an IPv4 address or, as one machine has them all, the IPv6 addresses of a /64; its network is the /24 or the /48.
type budgets struct {
	mu       sync.Mutex
	hosts    map[netip.Prefix]*host
	networks map[netip.Prefix]*rate.Limiter

	once                sync.Once
	known               *rate.Limiter    // renewals of tokens that are known
	regulars, strangers *rate.Limiter    // unknown tokens, from hosts that are known and from others
	rights              [2]*rate.Limiter // questions about rights: of callers who are not known, and who are
}

// host is where tokens come from.
type host struct {
	share      *rate.Limiter
	knownUntil time.Time // zero: nobody was admitted from there
}

// The rates of what the cluster is asked, a second, and how much may come at once. A renewal is due once a minute at most, so that
// knownRate suffices for verdictsMost tokens.
const (
	hostRate, hostBurst           = 10, 50 // the host may be a proxy
	networkRate, networkBurst     = 20, 100
	regularsRate, regularsBurst   = 100, 400
	strangersRate, strangersBurst = 100, 400
	knownRate, knownBurst         = 2 * verdictsMost / 60, 1000
	rightsRate, rightsBurst       = 500, 1000
	hostsMost                     = 4096 // that are remembered; as many networks
)

func (b *budgets) initOnce() {
	b.once.Do(func() {
		b.known = rate.NewLimiter(knownRate, knownBurst)
		b.regulars, b.strangers = rate.NewLimiter(regularsRate, regularsBurst), rate.NewLimiter(strangersRate, strangersBurst)
		for i := range b.rights {
			b.rights[i] = rate.NewLimiter(rightsRate, rightsBurst)
		}
		b.hosts, b.networks = map[netip.Prefix]*host{}, map[netip.Prefix]*rate.Limiter{}
	})
}

// spend takes one question about a token from a host off the budgets, waiting where the token is known. It reports whether there was one left.
func (b *budgets) spend(ctx context.Context, from netip.Addr, known bool) bool {
	b.initOnce()
	if known {
		return b.known.Wait(ctx) == nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	h := b.findOrAddHost(from)
	switch {
	case !h.share.AllowN(now, 1):
		return false
	case now.Before(h.knownUntil):
		return b.regulars.AllowN(now, 1)
	}
	return b.findOrAddNetwork(from).AllowN(now, 1) && b.strangers.AllowN(now, 1)
}

// markKnownHost remembers that somebody was admitted from a host.
func (b *budgets) markKnownHost(from netip.Addr) {
	b.initOnce()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.findOrAddHost(from).knownUntil = time.Now().Add(knownFor)
}

// waitForRight waits until the cluster may be asked about one more right.
func (b *budgets) waitForRight(ctx context.Context, known bool) error {
	b.initOnce()
	of := b.rights[0]
	if known {
		of = b.rights[1]
	}
	return of.Wait(ctx)
}

// findOrAddHost returns that of an address. Where there are too many, those are forgotten that are not known, or, where all are, all.
func (b *budgets) findOrAddHost(addr netip.Addr) *host {
	at := networkOf(addr, 32, 64)
	if h := b.hosts[at]; h != nil {
		return h
	}
	if now := time.Now(); len(b.hosts) >= hostsMost {
		for other, h := range b.hosts {
			if !now.Before(h.knownUntil) {
				delete(b.hosts, other)
			}
		}
	}
	if len(b.hosts) >= hostsMost {
		clear(b.hosts)
	}
	h := &host{share: rate.NewLimiter(hostRate, hostBurst)}
	b.hosts[at] = h
	return h
}

func (b *budgets) findOrAddNetwork(addr netip.Addr) *rate.Limiter {
	at := networkOf(addr, 24, 48)
	if b.networks[at] == nil {
		if len(b.networks) >= hostsMost {
			clear(b.networks) // strangers still bounds them all
		}
		b.networks[at] = rate.NewLimiter(networkRate, networkBurst)
	}
	return b.networks[at]
}

// networkOf returns the network of so many bits in which an address is; one for all that are none.
func networkOf(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	network, _ := addr.Prefix(bits)
	return network
}

// addressOf returns where a request comes from; zero where that is no address.
func addressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}
