package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Root returns the folder of the repository, in which or below which the process runs. What was built elsewhere does not know it.
func Root() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "test/build/build.go")); missing == nil {
			return dir
		}
	}
	panic(fmt.Sprintf("run it in the repository of evictrail, not in %s: %v", dir, err))
}

// Paths are the paths of built programs, by name.
type Paths map[string]string

// Path returns the path of a program. The error says which program was not asked for.
func (p Paths) Path(name string) (string, error) {
	path, ok := p[name]
	if !ok {
		return "", fmt.Errorf("program %q was not built", name)
	}
	return path, nil
}

// Build builds what is not in the cache, one program after the other, and returns all paths. Progress, and what the go command says,
// goes to the writer; nothing is written where all is there.
func Build(ctx context.Context, progress io.Writer, programs ...Program) (Paths, error) {
	paths := Paths{}
	for i, p := range programs {
		path, err := p.cachePath()
		if err != nil {
			return nil, err
		}
		if err := p.buildIfMissing(ctx, progress, path, fmt.Sprintf("%d of %d", i+1, len(programs))); err != nil {
			return nil, fmt.Errorf("build %s: %w", p.Name, err)
		}
		paths[p.Name] = path
	}
	return paths, nil
}

// Build builds the program where it is not in the cache, and returns its path.
func (p Program) Build() (string, error) {
	paths, err := Build(context.Background(), os.Stderr, p)
	return paths[p.Name], err
}

// buildIfMissing builds the program where it is not there.
func (p Program) buildIfMissing(ctx context.Context, progress io.Writer, path, count string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return withFileLock(path, func() error {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		start := time.Now()
		_, _ = fmt.Fprintf(progress, "building %s of %s (%s)\n", p.Name, filepath.Base(p.Module), count)
		if err := p.compile(ctx, progress, path+".new"); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(progress, "built %s in %s\n", p.Name, time.Since(start).Round(time.Second))
		return os.Rename(path+".new", path)
	})
}

// withFileLock does something about a file that no other process does during that time: who wants the same waits.
func withFileLock(path string, do func() error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return do()
}

// compile has the go command build the program.
func (p Program) compile(ctx context.Context, progress io.Writer, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", p.Tags, "-ldflags", "-s -w "+p.Flags, "-o", out, p.Source)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.moduleDir(), progress, progress
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return cmd.Run()
}
