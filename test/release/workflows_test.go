package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/test/build"
)

// readWorkflows returns the text of each workflow by its path.
func readWorkflows(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(build.Root(), ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.Len(t, paths, 2)
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[path] = string(text)
	}
	return texts
}

// TestWorkflows has actionlint check the workflows: keys, expressions, what one job needs of another. Without the
// checkers of other languages, it finds the same on every machine.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	actionlint, err := build.Actionlint().Build()
	require.NoError(t, err)
	args := []string{"-shellcheck=", "-pyflakes="}
	for path := range readWorkflows(t) {
		args = append(args, path)
	}
	runTool(t, actionlint, args...)
}

// TestActionsArePinned: a tag may be another commit tomorrow. The comment has the version of the commit.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`uses: [a-z0-9-]+/[a-z0-9-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	commits := map[string]string{}
	for path, text := range readWorkflows(t) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if !strings.Contains(line, "uses:") {
				continue
			}
			require.Regexp(t, pinned, line, path)
			action, commit, _ := strings.Cut(strings.TrimPrefix(line, "- "), "@")
			if known, ok := commits[action]; ok {
				require.Equal(t, known, commit, "one commit of %s everywhere", action)
			}
			commits[action] = commit
		}
	}
	require.Greater(t, len(commits), 5)
}

// TestWorkflowsRunWhatIsThere looks for each make target and script that a workflow runs.
func TestWorkflowsRunWhatIsThere(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(build.Root(), "Makefile"))
	require.NoError(t, err)
	ran := 0
	for path, text := range readWorkflows(t) {
		for _, target := range regexp.MustCompile(`(?m)run: make ([a-z-]+)`).FindAllStringSubmatch(text, -1) {
			require.Contains(t, string(makefile), "\n"+target[1]+":", path)
			ran++
		}
		for _, script := range regexp.MustCompile(`(?m)run: (\.ci/\S+)$`).FindAllStringSubmatch(text, -1) {
			require.FileExists(t, filepath.Join(build.Root(), script[1]), path)
			ran++
		}
	}
	require.Equal(t, 2, ran)
}

// TestWorkflowsHaveTheGoOfTheImage runs the step that reads it out of the Dockerfile.
func TestWorkflowsHaveTheGoOfTheImage(t *testing.T) {
	t.Parallel()
	dockerfile, err := os.ReadFile(filepath.Join(build.Root(), "deploy/Dockerfile"))
	require.NoError(t, err)
	for path, text := range readWorkflows(t) {
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct{ ID, Run string }
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &workflow))
		found := 0
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				if step.ID != "go" {
					continue
				}
				output := filepath.Join(t.TempDir(), "output")
				cmd := exec.CommandContext(t.Context(), "bash", "-c", step.Run)
				cmd.Dir, cmd.Env = build.Root(), append(os.Environ(), "GITHUB_OUTPUT="+output)
				runOf(t, cmd)
				read, err := os.ReadFile(output)
				require.NoError(t, err)
				version, ok := strings.CutPrefix(strings.TrimSpace(string(read)), "version=")
				require.True(t, ok, "%s", read)
				require.Contains(t, string(dockerfile), " golang:"+version+"@sha256:")
				found++
			}
		}
		require.Equal(t, 1, found, path)
	}
}

// TestIssueForms reads the forms of issues: GitHub shows none that has no name, description or body, and no field
// without a label.
func TestIssueForms(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(build.Root(), ".github/ISSUE_TEMPLATE/*.yml"))
	require.NoError(t, err)
	forms := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if filepath.Base(path) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct{ Label, Value string }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &form), path)
		require.NotEmpty(t, form.Name, path)
		require.NotEmpty(t, form.Description, path)
		require.NotEmpty(t, form.Body, path)
		for _, field := range form.Body {
			require.NotEmpty(t, field.Attributes.Label+field.Attributes.Value, path)
		}
		forms++
	}
	require.Positive(t, forms)
}
