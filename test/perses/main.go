// Command perses checks dashboards as Perses does: it reads them with Perses' own code, compares what that reads with what they say, so that nothing
// in them is unknown to it, and checks the settings of each plugin against the plugin's own schema.
//
//	perses -modules 'perses=DIR,statchart=DIR,...' FILE...
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"

	v1 "github.com/perses/perses/pkg/model/api/v1"
	"github.com/perses/perses/pkg/model/api/v1/common"
	"github.com/perses/perses/pkg/model/api/v1/dashboard"
)

func main() {
	modules := flag.String("modules", "", "`NAME=DIR,...`: the folders of Perses' Go modules")
	flag.Parse()
	if err := checkFiles(*modules, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func checkFiles(modules string, files []string) (err error) {
	work, err := os.MkdirTemp("", "perses")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	dirs := map[string]string{}
	for _, m := range strings.Split(modules, ",") {
		name, dir, _ := strings.Cut(m, "=")
		dirs[name] = dir
	}
	s, err := loadSchemas(work, dirs)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range files {
		plugins, err := checkFile(s, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		fmt.Printf("%s: %d plugins are as their schemas want them\n", name, plugins)
	}
	return errors.Join(errs...)
}

// checkFile checks one dashboard, and returns how many plugins it has.
func checkFile(s *schemas, name string) (plugins int, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	var d v1.Dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		return 0, err
	}
	if err := requireSame(text, d); err != nil {
		return 0, err
	}
	var errs []error
	check := func(where string, p common.Plugin) {
		plugins++
		if err := s.check(p.Kind, p.Spec); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	for key, p := range d.Spec.Panels {
		check("panel "+key, p.Spec.Plugin)
		for _, q := range p.Spec.Queries {
			check("query of "+key, q.Spec.Plugin)
		}
	}
	for _, v := range d.Spec.Variables {
		if list, is := v.Spec.(*dashboard.ListVariableSpec); is {
			check("variable "+list.GetName(), list.Plugin)
		}
	}
	return plugins, errors.Join(errs...)
}

// requireSame says where what was read is other than what was written: Perses does not read it.
func requireSame(text []byte, read v1.Dashboard) error {
	again, err := json.Marshal(read)
	if err != nil {
		return err
	}
	var want, got map[string]any
	if err := errors.Join(json.Unmarshal(text, &want), json.Unmarshal(again, &got)); err != nil {
		return err
	}
	return findUnread("", want, got)
}

// findUnread finds the first value that is written and was not read. Perses fills in what is not written.
func findUnread(at string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, is := got.(map[string]any)
		if !is {
			return fmt.Errorf("%s is not read", at)
		}
		for key, value := range w {
			if err := findUnread(at+"."+key, value, g[key]); err != nil {
				return err
			}
		}
	case []any:
		g, is := got.([]any)
		if !is || len(g) != len(w) {
			if len(w) == 0 && got == nil {
				return nil
			}
			return fmt.Errorf("%s is not read", at)
		}
		for i := range w {
			if err := findUnread(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); err != nil {
				return err
			}
		}
	default:
		if !reflect.DeepEqual(want, got) && !reflect.ValueOf(want).IsZero() {
			return fmt.Errorf("%s is not read: %v", at, want)
		}
	}
	return nil
}
