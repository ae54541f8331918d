package web

import (
	"bytes"

	"github.com/evictrail/evictrail/trail"
)

// RenderStrip returns what stands above the content of a page of one cluster that is shown among those of several evictrails: whose part is
// missing, and the way to all clusters.
func RenderStrip(missing []trail.MissingSource) ([]byte, error) {
	var b bytes.Buffer
	err := pages["front"].ExecuteTemplate(&b, "strip", missing)
	return b.Bytes(), err
}
