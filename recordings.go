package evictrail

import (
	"embed"
	"io/fs"
)

//go:embed testdata/recordings/*/*.gz testdata/recordings/*/*.yaml testdata/recordings/*/expected.json
var files embed.FS

// Recordings returns the recordings, one folder each.
func Recordings() fs.FS {
	sub, err := fs.Sub(files, "testdata/recordings")
	if err != nil {
		panic(err) // the path is the one embedded above
	}
	return sub
}
