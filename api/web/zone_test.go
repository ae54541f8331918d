package web

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestZones(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "", "UTC": "", "utc": "", "local": "local", "Local": "local", "Europe/Berlin": "Europe/Berlin"} {
		z, err := parseZone(name)
		require.NoError(t, err, name)
		require.Equal(t, want, z.Name)
	}
	for _, name := range []string{"Mars", "../../etc/passwd", "Europe/Berlin\"", string(make([]byte, 100))} {
		_, err := parseZone(name)
		require.ErrorIs(t, err, errBadQuestion, name)
	}
}

// TestPagesInAZone writes a page in other zones: times are those of the zone, and what leads to other pages keeps it.
func TestPagesInAZone(t *testing.T) {
	t.Parallel()
	const page = `<time datetime="2026-07-21T22:30:00Z">2026-07-21 22:30:00</time> <time datetime="2026-11-21T00:30:00Z" data-zone>2026-11-21 00:30:00 UTC</time>
<a href="/?cluster=a&amp;span=1h#moves">a</a> <a href="/assets/x.css">b</a> <a href="https://example.com/">c</a> <a href="/vms/a/b?tz=local">d</a>
<form class="search" action="/search" method="get" role="search"></form><form class="zone" method="get"></form><form class="theme" action="/theme" method="post"></form>`
	translate := func(name string) string {
		z, err := parseZone(name)
		require.NoError(t, err)
		return string(z.translatePage([]byte(page)))
	}
	require.Equal(t, page, translate("UTC"))
	require.Equal(t, `<time datetime="2026-07-21T22:30:00Z">2026-07-22 00:30:00</time> <time datetime="2026-11-21T00:30:00Z" data-zone>2026-11-21 01:30:00 CET</time>
<a href="/?cluster=a&amp;span=1h&amp;tz=Europe%2FBerlin#moves">a</a> <a href="/assets/x.css">b</a> <a href="https://example.com/">c</a> <a href="/vms/a/b?tz=Europe%2FBerlin">d</a>
<form class="search" action="/search" method="get" role="search"><input type="hidden" name="tz" value="Europe/Berlin"></form><form class="zone" method="get"></form><form class="theme" action="/theme" method="post"></form>`,
		translate("Europe/Berlin"))
	local := translate("local")
	require.Contains(t, local, ">2026-07-21 22:30:00<", "which zone that is only the browser knows")
	require.Contains(t, local, `href="/?cluster=a&amp;span=1h&amp;tz=local#moves"`)
}

func TestMoments(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	visitOf := func(address string) *visit {
		return &visit{Request: httptest.NewRequestWithContext(t.Context(), "GET", address, nil), asked: now}
	}
	v := visitOf("/vms/demo/vm-d?cluster=a&at=2026-11-21T03:00Z&from=24h&tz=local")
	at, err := v.parseMoment()
	require.NoError(t, err)
	require.Equal(t, now.Add(-21*time.Hour), at)
	require.Equal(t, &moment{At: at, Age: "21 h 0 min", Back: "/vms/demo/vm-d?cluster=a&from=24h&tz=local", Hidden: []hidden{{"cluster", "a"}}}, v.Moment)
	require.True(t, v.Past())

	v = visitOf("/vms/demo/vm-d")
	at, err = v.parseMoment()
	require.NoError(t, err)
	require.True(t, at.IsZero())
	require.False(t, v.Past())
	require.NotNil(t, v.Moment, "other moments are offered")

	for address, want := range map[string]string{
		"/?at=yesterday": `invalid link: at="yesterday": expected a time such as 2026-11-21T00:30:00Z`, "/?at=2027-01-01": `at="2027-01-01" is in the future`,
	} {
		_, err := visitOf(address).parseMoment()
		require.ErrorIs(t, err, errBadQuestion)
		require.ErrorContains(t, err, want)
	}
}
