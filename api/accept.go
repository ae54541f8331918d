package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// The formats of lists, and their media types. The first is sent to whom all are the same.
var formats = []string{"json", "csv"}

var mediaTypes = map[string]string{"json": "application/json", "csv": "text/csv"}

// acceptedFormat returns the format that the headers Accept of a request like best (RFC 9110, 12.5.1). The error is a *Problem.
func acceptedFormat(accept []string) (string, error) {
	best, most := "", 0.0
	for _, format := range formats {
		if q := parseQuality(strings.Join(accept, ","), mediaTypes[format]); q > most {
			best, most = format, q
		}
	}
	if best == "" {
		return "", newProblem(http.StatusNotAcceptable, "this comes as application/json or text/csv: send one of them in Accept, or none")
	}
	return best, nil
}

// parseQuality is how much a media type is liked, from 0 to 1: by the range that names it most closely.
func parseQuality(accept, mediaType string) float64 {
	if strings.TrimSpace(accept) == "" {
		return 1
	}
	all, _, _ := strings.Cut(mediaType, "/")
	closest, liked := -1, 0.0
	for _, part := range strings.Split(accept, ",") {
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		close := 0
		switch name {
		case mediaType:
			close = 2
		case all + "/*":
			close = 1
		case "*/*":
		default:
			continue
		}
		q, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			q = 1
		}
		if close > closest {
			closest, liked = close, q
		}
	}
	return liked
}
