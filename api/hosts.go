package api

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// requireHost answers requests that were sent to one of some names, to any where there are none. Where only this machine can reach us and
// nobody is asked who they are, a page elsewhere could else have its visitor's browser read ours, under a name of its own that
// it makes lead here (DNS rebinding).
func requireHost(hosts []string, next http.Handler) http.Handler {
	if len(hosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(hosts, hostOf(r.Host)) {
			writeProblem(w, http.StatusMisdirectedRequest, "evictrail serves this machine only here, as "+strings.Join(hosts, " or ")+": for other names start it with --auth")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns a host without its port, and without the brackets of an address.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return strings.ToLower(host)
}
