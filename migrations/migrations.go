package migrations

import "embed"

// FS holds the files, in the root.
//
//go:embed *.sql
var FS embed.FS
