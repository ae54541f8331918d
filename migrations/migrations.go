package migrations

import (
	"embed"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed schema functions views steps
var files embed.FS

// Script is the SQL of one file.
type Script struct {
	Name    string // such as steps/039_readable.sql
	SQL     string // statements, as psql reads them
	Version int64  // that the database is at after it; 0: what it was at
}

// steps are those that there are, by version.
var steps = readSteps()

// Oldest returns the oldest schema from which steps lead to the present one.
func Oldest() int64 { return steps[0].Version - 1 }

// Version returns the version of the present schema.
func Version() int64 { return steps[len(steps)-1].Version }

// Update returns what brings a database of schema version to the present one, in order. version is 0 of an empty database,
// else from Oldest up to before Version.
func Update(version int64) []Script {
	out := steps[max(version-Oldest(), 0):]
	if version == 0 {
		out = readScripts("schema")
		out[len(out)-1].Version = Version()
	}
	return append(append(slices.Clone(out), readScripts("functions")...), readScripts("views")...)
}

// readScripts returns the files of a folder, sorted by name. They are in the program: an error is a broken one.
func readScripts(dir string) []Script {
	entries, err := files.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	out := make([]Script, len(entries))
	for i, e := range entries {
		name := path.Join(dir, e.Name())
		sql, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		out[i] = Script{Name: name, SQL: string(sql)}
	}
	return out
}

// readSteps returns the steps, whose files begin with their versions: 039_readable.sql.
func readSteps() []Script {
	out := readScripts("steps")
	for i := range out {
		number, _, _ := strings.Cut(path.Base(out[i].Name), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || i > 0 && version != out[i-1].Version+1 {
			panic("schema migration " + out[i].Name + ": expected the version after the one before")
		}
		out[i].Version = version
	}
	return out
}
