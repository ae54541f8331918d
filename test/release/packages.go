package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/evictrail/evictrail/test/build"
)

// pack makes the packages of an architecture. What they hold and where is in deploy/packages/nfpm.yaml.
func (r *release) pack(ctx context.Context, p platform) error {
	nfpm, err := build.Nfpm().Build()
	if err != nil {
		return err
	}
	for _, folder := range []string{"man", "completions"} { // all in one folder, as the configuration expects
		if err := os.Symlink(filepath.Join(r.docs(), folder), filepath.Join(r.stage(p), folder)); err != nil {
			return fmt.Errorf("stage %s: %w", folder, err)
		}
	}
	for _, kind := range []string{"deb", "rpm"} {
		target := filepath.Join(r.out, fmt.Sprintf("evictrail_%s_%s.%s", r.version, p.Arch, kind))
		target, err := filepath.Abs(target)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, nfpm, "package",
			"--config", "deploy/packages/nfpm.yaml", "--packager", kind, "--target", target)
		cmd.Dir = r.checkout
		cmd.Env = r.environment("VERSION="+r.version, "ARCH="+p.Arch, "STAGE="+r.stage(p))
		if _, err := runCommand(cmd); err != nil {
			return err
		}
	}
	return nil
}

// packChart makes the archive of the Helm chart.
func (r *release) packChart(ctx context.Context) error {
	helm, err := build.Helm().Build()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, helm, "package", filepath.Join(r.checkout, "deploy", "chart"),
		"--destination", r.out, "--version", r.version, "--app-version", r.version)
	cmd.Env = r.environment()
	_, err = runCommand(cmd)
	return err
}
