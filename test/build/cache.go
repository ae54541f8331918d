package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// toolchain returns what `go env` says of everything outside a module that changes a program: version of Go, system, architecture.
var toolchain = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64")
	cmd.Dir = filepath.Join(Root(), "test")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its version: %w", err)
	}
	return string(out), nil
})

// cachePath returns where the program lies once it is built: <cache>/evictrail-test/<module>/<key>/<name>.
func (p Program) cachePath() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w", err)
	}
	key, err := p.cacheKey()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "evictrail-test", filepath.Base(p.Module), key, p.Name), nil
}

// cacheKey is a hash of what the program is made of. The module's go.sum stands for all its dependencies.
func (p Program) cacheKey() (string, error) {
	tools, err := toolchain()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, _ = fmt.Fprintln(h, tools, p.Source, p.Flags, p.Tags)
	for _, name := range append([]string{"go.mod", "go.sum"}, p.Extra...) {
		text, err := os.ReadFile(filepath.Join(p.moduleDir(), name))
		if err != nil {
			return "", fmt.Errorf("read module of %s: %w", p.Name, err)
		}
		_, _ = fmt.Fprintln(h, name, len(text))
		_, _ = h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func (p Program) moduleDir() string { return filepath.Join(Root(), filepath.FromSlash(p.Module)) }

// Missing returns the names of the programs that have to be built first. It builds nothing.
func Missing(programs ...Program) (string, error) {
	var missing []string
	for _, p := range programs {
		path, err := p.cachePath()
		if err != nil {
			return "", err
		}
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, p.Name)
		case err != nil:
			return "", err
		}
	}
	return strings.Join(missing, ", "), nil
}
