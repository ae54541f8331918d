package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// manifests are the files that name the archives with their checksums, by the template that each comes from.
var manifests = map[string]string{"krew.yaml.tmpl": "evictrail.yaml", "homebrew.rb.tmpl": "evictrail.rb"}

// writeManifests writes the manifest of krew and the formula of Homebrew.
func (r *release) writeManifests() error {
	for from, to := range manifests {
		text, err := os.ReadFile(filepath.Join(r.checkout, "deploy", "packages", from))
		if err != nil {
			return err
		}
		tmpl, err := template.New(from).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var out strings.Builder
		if err := tmpl.Execute(&out, map[string]any{"Version": r.version, "Archives": r.archives}); err != nil {
			return fmt.Errorf("render %s: %w", to, err)
		}
		if err := writePublic(filepath.Join(r.out, to), out.String()); err != nil {
			return err
		}
	}
	return nil
}
