package web

import (
	"net/http"
	"net/url"
	"path"
	"strings"
)

// redirectToPath leads the browser to a page of this site: to target, or to the front page where target is not a path of ours. Every redirect
// whose target came with a request goes through it.
func redirectToPath(w http.ResponseWriter, r *http.Request, target string) {
	http.Redirect(w, r, ownPath(target), http.StatusSeeOther) //nolint:gosec // a path of our own
}

// ownPath returns target as a path of this site with its query, "/" where it is anything else.
//
// Browsers do not read an address as RFC 3986 does: they drop tabs and line breaks wherever they stand and spaces at the ends, and take
// a backslash for a slash (WHATWG URL, 4.4), so that "/\t/host" leads to another host. Such bytes are refused, also percent-encoded in
// the path, as are empty, "." and ".." segments; what is returned is written again from what was parsed.
func ownPath(target string) string {
	if strings.ContainsFunc(target, foldedByBrowsers) {
		return "/"
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !plainPath(u.Path) {
		return "/"
	}
	own := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return own.String()
}

// plainPath reports whether a decoded path is absolute and has nothing that a browser, a proxy or a router would rewrite.
func plainPath(p string) bool {
	clean := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == clean || p == clean+"/") && !strings.ContainsFunc(p, foldedByBrowsers)
}

// foldedByBrowsers reports whether browsers drop a character from an address, or take it for another one.
func foldedByBrowsers(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }
