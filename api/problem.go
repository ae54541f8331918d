package api

import (
	"encoding/json"
	"net/http"
)

// problem answers with a problem document (RFC 9457): the status in words, and what is wrong and what to do.
func problem(w http.ResponseWriter, code int, detail string) {
	writeJSON(w, code, "application/problem+json", struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(code), code, detail})
}

func writeJSON(w http.ResponseWriter, code int, contentType string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("marshal answer: " + err.Error()) // our own types: cannot fail
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(raw, '\n'))
}
