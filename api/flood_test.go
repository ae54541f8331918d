package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// knownCluster knows tokens that begin with user, and counts how often it is asked.
type knownCluster struct{ asked, junk atomic.Int64 }

func (c *knownCluster) Authenticate(_ context.Context, token string, _ []string) (User, bool, error) {
	c.asked.Add(1)
	if !strings.HasPrefix(token, "user") {
		c.junk.Add(1)
		return User{}, false, nil
	}
	return User{Name: token}, true, nil
}
func (*knownCluster) MaySeeVMs(context.Context, User, string) (bool, error) { return true, nil }
func (*knownCluster) MayScrape(context.Context, User) (bool, error)         { return true, nil }
func (*knownCluster) MayAcknowledge(context.Context, User, trail.Subject) (bool, error) {
	return true, nil
}

// TestJunkLocksNobodyOut sends junk tokens from twelve addresses of one network over HTTP, fourteen a second each, for several times as long as a
// verdict holds: anyone who was known is answered throughout, Prometheus as well, also with a token that is new; and so is a stranger of another network.
func TestJunkLocksNobodyOut(t *testing.T) {
	t.Parallel()
	const floods, hold, lasts, callers = 12, 500 * time.Millisecond, 4 * time.Second, 34
	c := &knownCluster{}
	h := Server{
		Gate:    &Gate{Reviewer: c, Cluster: func() string { return "prod" }, hold: hold},
		Health:  &Health{Status: func(context.Context) trail.RecorderStatus { return trail.RecorderStatus{} }, Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})},
		Readers: ForAll(nil),
		Stream:  &Stream{Done: newClosedChannel(), Changes: func(context.Context, trail.Scope, trail.Query, time.Duration) ([]time.Time, error) { return nil, nil }},
	}.Handler()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	from := func(address string) *http.Client {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		transport := &http.Transport{DialContext: dialer.DialContext}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: 30 * time.Second}
	}
	get := func(client *http.Client, path, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			return 0
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		if err != nil {
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	people, prometheus, stranger := from("127.0.0.1"), from("127.0.3.1"), from("127.0.4.1")
	require.Equal(t, http.StatusOK, get(prometheus, "/metrics", "user-prometheus"))
	for i := range callers {
		require.Equal(t, http.StatusOK, get(people, "/api/v1/stream", fmt.Sprint("user-", i)))
	}
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	var refused, flooded atomic.Int64
	for i := range floods {
		client := from(fmt.Sprintf("127.0.2.%d", i+1))
		all.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				if get(client, "/api/v1/stream", fmt.Sprintf("junk-%d-%d", i, n)) == http.StatusTooManyRequests {
					refused.Add(1)
				}
				flooded.Add(1)
				time.Sleep(time.Second / 14)
			}
		})
	}
	var answered atomic.Int64
	wait := func(client *http.Client, every time.Duration, path string, token func(n int) string) {
		all.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				if code := get(client, path, token(n)); code != http.StatusOK {
					t.Errorf("%s of %s: %d", path, token(n), code)
				}
				answered.Add(1)
				time.Sleep(every)
			}
		})
	}
	for i := range callers {
		wait(people, 2*hold, "/api/v1/stream", func(int) string { return fmt.Sprint("user-", i) })
	}
	wait(prometheus, hold, "/metrics", func(n int) string { return fmt.Sprint("user-prometheus-renewed-", n) })
	wait(stranger, 2*hold, "/api/v1/stream", func(n int) string { return fmt.Sprint("user-stranger-", n) })
	all.Wait()
	t.Logf("%d junk tokens, of which %d were refused unasked and the cluster was asked about %d; %d answers to callers", flooded.Load(), refused.Load(), c.junk.Load(), answered.Load())
	require.Positive(t, refused.Load())
	require.LessOrEqual(t, c.junk.Load(), int64(networkBurst+networkRate*(lasts.Seconds()+5)))
}

func newClosedChannel() chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// TestRenewalsArePacedAndPrompt has thousands of callers come at one moment and go on asking for an hour: nobody is refused, no verdict is older than
// a minute, and the cluster is asked about few of them in any one second.
func TestRenewalsArePacedAndPrompt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const callers, asks = 1000, 150
		var most, now int64
		asked := map[string]time.Time{}
		var mu sync.Mutex
		g := &Gate{Cluster: func() string { return "prod" }}
		g.Reviewer = reviewed(func(token string) bool {
			mu.Lock()
			defer mu.Unlock()
			asked[token] = time.Now()
			now++
			return true
		})
		admit := func(i int) {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.RemoteAddr = fmt.Sprintf("10.%d.%d.7:1", i/250, i%250) // a network for each, as strangers share
			r.Header.Set("Authorization", fmt.Sprint("Bearer user-", i))
			_, err := g.authorizeRequest(r, rightToSeeVMs)
			require.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			require.Less(t, time.Since(asked[fmt.Sprint("user-", i)]), rightsHold+time.Nanosecond, "an answer that is older than a minute")
		}
		for i := range callers {
			admit(i)
			time.Sleep(time.Second / strangersRate)
		}
		for range asks {
			mu.Lock()
			now = 0
			mu.Unlock()
			for i := range callers {
				admit(i)
			}
			synctest.Wait()
			mu.Lock()
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
		}
		require.Less(t, most, int64(callers/5), "renewals of one second")
	})
}

// reviewed is a cluster that knows the tokens for which it holds, and lets everybody see everything.
type reviewed func(token string) bool

func (f reviewed) Authenticate(_ context.Context, token string, _ []string) (User, bool, error) {
	return User{Name: token}, f(token), nil
}
func (reviewed) MaySeeVMs(context.Context, User, string) (bool, error)             { return true, nil }
func (reviewed) MayScrape(context.Context, User) (bool, error)                     { return true, nil }
func (reviewed) MayAcknowledge(context.Context, User, trail.Subject) (bool, error) { return true, nil }

// TestNetworks has addresses of one machine or of one network share, in each form in which they come.
func TestNetworks(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string][2]string{
		"10.1.2.3:4":            {"10.1.2.3/32", "10.1.2.0/24"},
		"[::ffff:10.1.2.3]:4":   {"10.1.2.3/32", "10.1.2.0/24"},
		"[2001:db8:1:2:3::4]:5": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"[fe80::1%eth0]:5":      {"fe80::/64", "fe80::/48"},
		"@":                     {netip.Prefix{}.String(), netip.Prefix{}.String()},
	} {
		at := addressOf(remote)
		require.Equal(t, want, [2]string{networkOf(at, 32, 64).String(), networkOf(at, 24, 48).String()}, remote)
	}
}

// TestHostsAndNetworksAreForgotten comes from more addresses than are remembered: a known one is not forgotten for those.
func TestHostsAndNetworksAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b budgets
		regular := netip.MustParseAddr("192.0.2.1")
		b.markKnownHost(regular)
		for i := range 3 * hostsMost {
			b.spend(t.Context(), netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), false)
		}
		require.LessOrEqual(t, len(b.hosts), hostsMost)
		require.LessOrEqual(t, len(b.networks), hostsMost)
		require.False(t, b.spend(t.Context(), netip.MustParseAddr("198.51.100.1"), false), "strangers have used up theirs")
		require.True(t, b.spend(t.Context(), regular, false))
		time.Sleep(knownFor)
		b.strangers.SetBurst(0)
		require.False(t, b.spend(t.Context(), regular, false), "it is a stranger after an hour")
	})
}
