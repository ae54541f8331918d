package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnPath has addresses that lead elsewhere in a browser, by each rule of the WHATWG URL standard that could make one.
func TestOwnPath(t *testing.T) {
	t.Parallel()
	for _, own := range []string{
		"/", "/search?q=x", "/vms/shop/db-1?cluster=prod&at=2026-11-21T00:45:07Z", "/nodes/n%C3%BC", "/loops/3f/", "/vms/shop/db-1?q=//evil.com",
		"/api/v1/names?kind=namespace", "/search?q=%09%5C", "/@evil.com", "/evil.com:80", "/http:evil.com",
	} {
		require.Equal(t, own, ownPath(own))
	}
	for _, foreign := range []string{
		"", "evil.com", "https://evil.com/", "HTTPS:evil.com", "https:/evil.com", "javascript:alert(1)", "data:text/html,x", "mailto:a@evil.com",
		"//evil.com", "///evil.com", "////evil.com", "//user:pw@evil.com/", "//evil.com:443/x", `\\evil.com`, `/\evil.com`, `\/evil.com`, `/\/evil.com`,
		"/\t/evil.com", "\t//evil.com", "/\n/evil.com", "/\r/evil.com", "/\r\n/evil.com", "/\x00/evil.com", "/\x0b/evil.com", "/\x1f/evil.com", "/\x7f/evil.com",
		" //evil.com", " /search", "/ /evil.com", "/search ", "/vms/a%20b/c", "/\t", "/\r\nSet-Cookie: a=b",
		"/./evil.com/..//x", "/.//evil.com", "/..//evil.com", "/%2e//evil.com", "/%2e%2e//evil.com", "/a/..//evil.com", "/a//evil.com", "/.", "/..",
		"/%09/evil.com", "/%0a/evil.com", "/%0d/evil.com", "/%00/evil.com", "/%5cevil.com", "/%5c%5cevil.com", "/%2f%2fevil.com", "/%2fevil.com", "%2f%2fevil.com",
		"/%", "/%zz", "?q=x", "#x", "/\u0085\t/evil.com",
	} {
		require.Equal(t, "/", ownPath(foreign), "%q", foreign)
	}
	require.Equal(t, "/search", ownPath("/search#//evil.com"), "a fragment is not needed")
}

// FuzzOwnPath holds whatever ownPath returns to what a browser makes of it.
func FuzzOwnPath(f *testing.F) {
	for _, seed := range []string{"/", "/\t/evil.com", "//evil.com", `/\evil.com`, "/%2f%2fevil.com", "/a/../..//b?c#d", "/%e0/é?\xff", "https://x", "/.//x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "https://evictrail.example/signin", nil)
		redirectToPath(w, r, target)
		location := w.Header().Get("Location")
		if seen := asBrowser(location); !strings.HasPrefix(seen, "/") || strings.HasPrefix(seen, "//") {
			t.Fatalf("%q leads to %q, which a browser reads as %q", target, location, seen)
		}
		base, err := url.Parse("https://evictrail.example/signin")
		require.NoError(t, err)
		there, err := base.Parse(location)
		if err != nil || there.Host != "evictrail.example" || there.Scheme != "https" {
			t.Fatalf("%q leads to %q: %v, %v", target, location, there, err)
		}
		if again := ownPath(ownPath(target)); again != ownPath(target) {
			t.Fatalf("%q: %q, and then %q", target, ownPath(target), again)
		}
	})
}

// asBrowser does with an address what the WHATWG URL standard does before and while it looks for a host: it drops control characters and
// spaces at the ends, and tabs and line breaks everywhere, and reads a backslash as a slash.
func asBrowser(address string) string {
	address = strings.TrimFunc(address, func(c rune) bool { return c <= ' ' })
	return strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(address)
}
