package main

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
)

// packPlugins builds the plugins of consoles and packs each: for Headlamp the folder that it wants, for the OpenShift console a
// kustomization.
func (r *release) packPlugins(ctx context.Context) error {
	const built = "bin/plugins"
	cmd := exec.CommandContext(ctx, "hack/build-plugins.sh", built, r.version)
	cmd.Dir = r.checkout
	cmd.Env = r.environment()
	if _, err := runCommand(cmd); err != nil {
		return err
	}
	for _, c := range consoles {
		paths, err := findFiles(filepath.Join(r.checkout, built, c.built), c.folder)
		if err != nil {
			return err
		}
		paths[c.folder+"/LICENSE"] = filepath.Join(r.checkout, "LICENSE")
		if err := r.writeTar(pluginName(c.name, r.version), paths); err != nil {
			return err
		}
	}
	return nil
}

// consoles are those that have a plugin: where that is built, and the folder that its archive holds.
var consoles = []struct{ name, built, folder string }{
	{"headlamp", "headlamp/evictrail", "evictrail"},
	{"console", "console", "evictrail-console"},
}

// pluginName is the archive of the plugin for a console.
func pluginName(console, version string) string {
	return fmt.Sprintf("evictrail-%s-%s.tar.gz", console, version)
}

// findFiles returns the paths of all files below a folder, by their names below another.
func findFiles(folder, below string) (map[string]string, error) {
	paths := map[string]string{}
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		paths[path.Join(below, filepath.ToSlash(name))] = file
		return err
	})
	return paths, err
}
