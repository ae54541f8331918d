package api

import (
	"context"
	"net/http"
)

// callerKey is that of the caller in the context of a request.
type callerKey struct{}

// attachCaller has each request carry who it counts for: its host, until the gate knows its user.
func attachCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "host " + networkOf(addressOf(r.RemoteAddr), 32, 64).String()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, &name)))
	})
}

// nameCaller has the rest of the request count for a user.
func nameCaller(ctx context.Context, user string) {
	if name, is := ctx.Value(callerKey{}).(*string); is {
		*name = "user " + user
	}
}

// callerOf returns who a request counts for.
func callerOf(ctx context.Context) string {
	if name, is := ctx.Value(callerKey{}).(*string); is {
		return *name
	}
	return ""
}
