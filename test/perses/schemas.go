package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
)

// schemas are the schemas of plugins, by kind.
type schemas struct {
	cue  *cue.Context
	kind map[string]cue.Value
}

// schemaFolders are the folders of schemas in the modules of plugins.
var schemaFolders = map[string][]string{
	"markdown": {"schemas"}, "statchart": {"schemas"}, "table": {"schemas"}, "timeserieschart": {"schemas"},
	"prometheus": {"schemas/prometheus-time-series-query", "schemas/prometheus-label-values"},
}

// loadSchemas reads schemas. modules has the folder of each Go module, by the last part of its name. work is an empty folder: CUE looks there for what
// schemas import.
func loadSchemas(work string, modules map[string]string) (*schemas, error) {
	pkg := filepath.Join(work, "cue.mod", "pkg", "github.com", "perses")
	links := map[string]string{"perses/cue": filepath.Join(modules["perses"], "cue")}
	for name := range schemaFolders {
		links["plugins/"+name] = modules[name]
	}
	for to, from := range links {
		if err := os.CopyFS(filepath.Join(pkg, filepath.FromSlash(to)), os.DirFS(from)); err != nil {
			return nil, err
		}
		_ = os.RemoveAll(filepath.Join(pkg, filepath.FromSlash(to), "cue.mod")) // it would be a module of its own, whose imports are looked for elsewhere
	}
	if err := os.WriteFile(filepath.Join(work, "cue.mod", "module.cue"), []byte("module: \"evictrail.dev/check@v0\"\nlanguage: version: \"v0.14.0\"\n"), 0o600); err != nil {
		return nil, err
	}
	s := &schemas{cuecontext.New(), map[string]cue.Value{}}
	for name, folders := range schemaFolders {
		for _, folder := range folders {
			instances := load.Instances([]string{path.Join("github.com/perses/plugins", name, folder) + ":model"}, &load.Config{Dir: work})
			v := s.cue.BuildInstance(instances[0])
			if v.Err() != nil {
				return nil, fmt.Errorf("schema %s of %s: %s", folder, name, cueerrors.Details(v.Err(), nil))
			}
			kind, err := v.LookupPath(cue.ParsePath("kind")).String()
			if err != nil {
				return nil, fmt.Errorf("schema %s of %s: %w", folder, name, err)
			}
			s.kind[kind] = v
		}
	}
	return s, nil
}

// check says what the schema of a plugin finds wrong with its settings.
func (s *schemas) check(kind string, spec any) error {
	schema, known := s.kind[kind]
	if !known {
		return fmt.Errorf("there is no schema of %q", kind)
	}
	made := schema.Unify(s.cue.Encode(map[string]any{"kind": kind, "spec": spec}))
	if err := made.Validate(cue.Concrete(true), cue.Final()); err != nil {
		return errors.New(kind + ": " + cueerrors.Details(err, nil))
	}
	return nil
}
