package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// host is the platform that runs what it has built.
var host = platform{runtime.GOOS, runtime.GOARCH}

// inherited are the environment variables that a build of a release sees. All others could change it.
var inherited = []string{
	"PATH", "HOME", "TMPDIR", "GOPATH", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// environment returns the environment of the release's commands.
func (r *release) environment(more ...string) []string {
	var env []string
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, "LC_ALL=C", "TZ=UTC", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
	if r.goCache != "" {
		env = append(env, "GOCACHE="+r.goCache)
	}
	return append(env, more...)
}

// buildProgram builds evictrail as `make build` does, and stages it.
func (r *release) buildProgram(ctx context.Context, p platform) error {
	bin, err := filepath.Rel(r.checkout, r.stage(p)) // the folder's own name may have spaces, which make cannot take
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "make", "--silent", "build", "VERSION="+r.version, "BIN="+bin)
	cmd.Dir = r.checkout
	cmd.Env = r.environment("CGO_ENABLED=0", "GOWORK=off", "GOOS="+p.OS, "GOARCH="+p.Arch)
	_, err = runCommand(cmd)
	return err
}

// docs is the folder with the manual pages and completions, which all platforms share.
func (r *release) docs() string { return filepath.Join(r.checkout, "bin", "stage", "docs") }

// completions are the files that make shells complete, by the name of the shell.
var completions = map[string]string{"bash": "evictrail.bash", "zsh": "_evictrail", "fish": "evictrail.fish"}

// writeDocs has an evictrail for this machine write its manual pages and completions.
func (r *release) writeDocs(ctx context.Context) error {
	if err := r.buildProgram(ctx, host); err != nil {
		return err
	}
	program := filepath.Join(r.stage(host), "evictrail")
	if err := os.MkdirAll(filepath.Join(r.docs(), "completions"), 0o750); err != nil {
		return fmt.Errorf("make folder for completions: %w", err)
	}
	for shell, name := range completions {
		out, err := runCommand(askProgram(ctx, program, "completion", shell))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.docs(), "completions", name), out, 0o600); err != nil {
			return fmt.Errorf("write completion of %s: %w", shell, err)
		}
	}
	man := filepath.Join(r.docs(), "man")
	if _, err := runCommand(askProgram(ctx, program, "generate", "man", man)); err != nil {
		return err
	}
	return compressFiles(man)
}

// askProgram returns a command of evictrail without an environment: a home would be among the defaults that it names.
func askProgram(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{}
	return cmd
}

// compressFiles replaces each file of a folder by a compressed one, without a time: NAME.gz for NAME.
func compressFiles(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read manual page: %w", err)
		}
		var out strings.Builder
		zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := zip.Write(text); err != nil {
			return err
		}
		if err := zip.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(path+".gz", []byte(out.String()), 0o600); err != nil {
			return fmt.Errorf("compress manual page: %w", err)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// stageFiles returns the paths below the stage of a platform that its archive holds, by their names in it.
func (r *release) stageFiles(p platform) (map[string]string, error) {
	paths := map[string]string{
		"evictrail": filepath.Join(r.stage(p), "evictrail"),
		"LICENSE":   filepath.Join(r.checkout, "LICENSE"),
		"README.md": filepath.Join(r.checkout, "README.md"),
	}
	for _, folder := range []string{"man", "completions"} {
		found, err := filepath.Glob(filepath.Join(r.docs(), folder, "*"))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			paths[folder+"/"+filepath.Base(path)] = path
		}
	}
	return paths, nil
}
