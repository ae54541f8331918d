package api

import (
	"net"
	"net/http"
)

// hstsAge is for how long browsers are to ask this host over HTTPS alone, in seconds: a year.
const hstsAge = "31536000"

// strictTransport has browsers come over HTTPS from now on, where they did. A host that others share, as localhost is with everything that
// is forwarded to it, is not pinned, and of addresses browsers remember nothing (RFC 6797, 8.1.1).
func strictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := hostOf(r.Host); r.TLS != nil && host != "localhost" && net.ParseIP(host) == nil {
			w.Header().Set("Strict-Transport-Security", "max-age="+hstsAge)
		}
		next.ServeHTTP(w, r)
	})
}

// DeniedCrossSite is the cause of a write that a page of another site had a browser send.
const DeniedCrossSite = "cross_site"

// sameSite refuses whatever writes (every method but GET, HEAD and OPTIONS) where a browser says that a page of another site sends it:
// else any page could have its visitor's browser write here, where this machine or a cookie is let in. API servers, log forwarders and
// curl are no browsers: they send neither Sec-Fetch-Site nor Origin, and pass.
func (s Server) sameSite(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if s.Denied != nil {
			s.Denied(DeniedCrossSite)
		}
		writeProblem(w, http.StatusForbidden, "a page of another site has sent this: evictrail takes what is written from its own pages, and from programs")
	}))
	return protection.Handler(next)
}
