package api

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// gzipFrom is from how many bytes on an answer is compressed.
const gzipFrom = 1 << 10

// compress compresses what is worth it, where the client likes that.
var compress = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(gzipFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false)) // encoders of zstd cost megabytes each
	if err != nil {
		panic("compress: " + err.Error()) // our options are fixed
	}
	return wrap
}()

// CompressResponses compresses the answers of a handler that are worth it, where the client likes that.
func CompressResponses(next http.Handler) http.Handler { return compress(next) }
