//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// result is what came of a mutant.
type result struct {
	mutant
	noticed string // by which tests; empty where none did
	problem string // why it was not noticed
	took    time.Duration
	output  string // of the test
}

// runner runs tests of a repository.
type runner struct {
	root   string // absolute
	memory int64  // bytes that a test and all that it starts may take
	sound  map[string]string
}

// run runs the test of a mutant without it and with it.
func (r *runner) run(m mutant) result {
	out := result{mutant: m}
	changed, err := m.mutateFile(r.root)
	if err != nil {
		out.problem = err.Error()
		return out
	}
	if out.problem = r.runSound(m); out.problem != "" {
		return out
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		out.problem = err.Error()
		return out
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := writeOverlay(dir, filepath.Join(r.root, m.file), changed)
	if err != nil {
		out.problem = err.Error()
		return out
	}
	started := time.Now()
	// By the environment, so that it holds for what a test builds, too.
	e := r.runTest(m, []string{"-count=1"}, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	out.took, out.output = time.Since(started), e.output
	out.noticed, out.problem = e.evaluateResult()
	return out
}

// writeOverlay writes a file and a description that puts it in the place of another, for go test -overlay.
func writeOverlay(dir, path string, changed []byte) (string, error) {
	file, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	description, err := json.Marshal(map[string]map[string]string{"Replace": {path: file}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(file, changed, 0o600), os.WriteFile(overlay, description, 0o600))
}

// runSound runs the test of a mutant without it, unless that was done, and returns why it fails. The results of go test are cached.
func (r *runner) runSound(m mutant) (problem string) {
	key := m.pkg + " " + m.test
	if problem, done := r.sound[key]; done {
		return problem
	}
	switch e := r.runTest(m, nil); {
	case e.stopped != "":
		problem = "without the mutant the test " + e.stopped
	case e.failed:
		problem = "the test fails without the mutant: " + lastLine(e.output)
	case strings.Contains(e.output, "no tests to run"):
		problem = "there is no such test"
	}
	r.sound[key] = problem
	return problem
}

// execution is how a test ended.
type execution struct {
	output  string
	failed  bool
	stopped string // why it was stopped, if it was
}

// runTest runs the test of a mutant with more arguments and environment. Whatever it leaves running is killed.
func (r *runner) runTest(m mutant, args []string, env ...string) (e execution) {
	dir, pkg := r.root, m.pkg
	if below, is := strings.CutPrefix(pkg, "./test/"); is { // a module of its own
		dir, pkg = filepath.Join(r.root, "test"), "./"+below
	}
	var output bytes.Buffer
	cmd := exec.Command("go", slices.Concat([]string{"test", "-vet=off", "-run", m.test, "-timeout", m.within.String()}, args, []string{pkg})...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &output, &output
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second // what it left running may hold its output open
	if err := cmd.Start(); err != nil {
		return execution{failed: true, output: err.Error()}
	}
	stop := watchLimits(cmd.Process.Pid, m.within+buildTime, r.memory)
	err := cmd.Wait()
	e.stopped = stop()
	killDescendants(os.Getpid())
	e.failed, e.output = err != nil, output.String()
	return e
}

// buildTime is how long building a test may take beside running it.
const buildTime = 5 * time.Minute

// failures finds the tests of the first level that failed.
var failures = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// evaluateResult returns by which tests a mutant was noticed, or why it was not.
func (e execution) evaluateResult() (noticed, problem string) {
	switch {
	case e.stopped != "":
		return "", e.stopped
	case !e.failed:
		return "", "survived"
	case strings.Contains(e.output, "[build failed]") || strings.Contains(e.output, "[setup failed]"):
		return "", "does not build: " + lastLine(e.output)
	case strings.Contains(e.output, "panic: test timed out after"):
		return "", "ran out of time"
	}
	var names []string
	for _, match := range failures.FindAllStringSubmatch(e.output, -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, ", "), ""
	case strings.Contains(e.output, "left behind: "):
		return "leaktest", ""
	}
	return "", "the test failed and did not say why: " + lastLine(e.output)
}

// lastLine returns the last line of a text that is not the verdict of go test.
func lastLine(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "FAIL")
	})
	if len(lines) == 0 {
		return "it says nothing"
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
