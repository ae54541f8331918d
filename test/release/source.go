package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/test/build"
)

// source is what a release is made of.
type source struct {
	commit  string
	time    time.Time // of the commit: all files carry it
	version string    // without a v before it
	tagged  bool      // the version is that of a tag
}

// findSource returns what is committed, with changes to tracked files that are not yet: then it makes a commit of them
// that no branch has.
func findSource(ctx context.Context, mustBeTagged bool) (source, error) {
	_, err := runGit(ctx, build.Root(), "status", "--short") // looks at files that were written again as they were, of which stash only says that it fails
	if err != nil {
		return source{}, err
	}
	commit, err := runGit(ctx, build.Root(), "stash", "create")
	if err == nil && commit == "" {
		commit, err = runGit(ctx, build.Root(), "rev-parse", "HEAD")
	}
	if err != nil {
		return source{}, err
	}
	s := source{commit: commit}
	seconds, err := runGit(ctx, build.Root(), "show", "--no-patch", "--format=%ct", commit)
	if err != nil {
		return source{}, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return source{}, fmt.Errorf("read time of commit %s: %w", commit, err)
	}
	s.time = time.Unix(unix, 0).UTC()
	text, err := runGit(ctx, build.Root(), "show", commit+":deploy/chart/Chart.yaml")
	if err != nil {
		return source{}, err
	}
	tag, untagged := runGit(ctx, build.Root(), "describe", "--tags", "--exact-match", "--match", "v[0-9]*", commit)
	if untagged != nil && mustBeTagged {
		return source{}, fmt.Errorf("commit %s has no tag such as v0.1.0: %w", commit, untagged)
	}
	s.tagged = untagged == nil
	s.version, err = chooseVersion([]byte(text), strings.TrimPrefix(tag, "v"), s.tagged, commit)
	return s, err
}

// chooseVersion returns the version of a tag, which must be the chart's, or one of a commit before that version.
func chooseVersion(chart []byte, tag string, tagged bool, commit string) (string, error) {
	var of struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(chart, &of); err != nil {
		return "", fmt.Errorf("read Chart.yaml: %w", err)
	}
	if of.Version == "" || of.Version != of.AppVersion {
		return "", fmt.Errorf("deploy/chart/Chart.yaml: version %q, appVersion %q: expected the same",
			of.Version, of.AppVersion)
	}
	if tagged && tag != of.Version {
		const text = "tag v%s, version %s of deploy/chart/Chart.yaml: expected the same; tag a commit of that version"
		return "", fmt.Errorf(text, tag, of.Version)
	}
	if tagged {
		return tag, nil
	}
	return of.Version + "-dev.g" + commit[:8], nil
}

// checkOut writes the files of the commit into a new folder, a repository of its own that reads the objects of ours.
// Nobody has to trust a folder of another user for that, and no branch is checked out: what `evictrail version` says
// of it is the same everywhere.
func (s source) checkOut(ctx context.Context, dir string) error {
	objects, err := runGit(ctx, build.Root(), "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make folder for commit: %w", err)
	}
	if _, err := runGit(ctx, dir, "init", "--quiet", "--template="); err != nil {
		return err
	}
	info := filepath.Join(dir, ".git", "objects", "info")
	if err := os.MkdirAll(info, 0o750); err != nil {
		return fmt.Errorf("make %s: %w", info, err)
	}
	if err := os.WriteFile(filepath.Join(info, "alternates"), []byte(objects+"\n"), 0o600); err != nil {
		return fmt.Errorf("name objects of our repository: %w", err)
	}
	if _, err := runGit(ctx, dir, "-c", "advice.detachedHead=false", "checkout", "--quiet", s.commit); err != nil {
		return err
	}
	return s.setTimes(dir)
}

// setTimes sets the times of all files to that of the commit: archives hold them.
func (s source) setTimes(dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		return root.Chtimes(path, s.time, s.time)
	})
}

// runGit runs git and returns the first line that it prints, or all where there are more.
func runGit(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := runCommand(cmd)
	return strings.TrimSpace(string(out)), err
}

// runCommand runs a program and returns its output. The error has what the program said.
func runCommand(cmd *exec.Cmd) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s%s", strings.Join(cmd.Args, " "), err, stderr.Bytes(), stdout.Bytes())
	}
	return stdout.Bytes(), nil
}
