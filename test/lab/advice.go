package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/lab/scenario"
)

// Advice implements scenario.Stage. The command runs in a shell, as it is printed.
func (s *stage) Advice(ctx context.Context, user string, advice scenario.Advice) error {
	command, err := s.findCommand(ctx, advice)
	if err != nil {
		return err
	}
	if out, err := s.runAs(ctx, user, "sh", "-c", command); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// answered bounds how long evictrail may take to advise what is expected of it: it follows the cluster within seconds.
const answered = 30 * time.Second

// findCommand returns the command that is advised.
func (s *stage) findCommand(ctx context.Context, advice scenario.Advice) (string, error) {
	for deadline := time.Now().Add(answered); ; {
		commands, err := s.listCommands(ctx, advice)
		if err != nil {
			return "", err
		}
		matching := slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return !strings.Contains(c, advice.Contains) })
		switch {
		case len(matching) == 1 && advice.Runbook == "":
			return matching[0], nil
		case len(matching) == 1:
			return s.fillPlaceholders(ctx, matching[0], advice.VM)
		case time.Now().After(deadline):
			return "", fmt.Errorf("commands of %s that contain %q: expected one of %q", cmp.Or(advice.Runbook, advice.Question, "why-not"), advice.Contains, commands)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// fillPlaceholders writes the names of a VM into the command of a runbook.
func (s *stage) fillPlaceholders(ctx context.Context, command, vm string) (string, error) {
	node, err := s.nodeToLeave(ctx, vm)
	return strings.NewReplacer("NAMESPACE", namespace, "VM", vm, "NODE", node).Replace(command), err
}

// Look implements scenario.Stage. What needs jq is left out where there is none.
func (s *stage) Look(ctx context.Context, vm string) error {
	files, err := filepath.Glob(filepath.Join(build.Root(), "docs/runbooks/*.md"))
	if err != nil {
		return err
	}
	_, noJQ := exec.LookPath("jq")
	var failed []error
	ran, leftOut := 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		commands, err := s.listCommands(ctx, scenario.Advice{Runbook: name})
		if err != nil {
			return err
		}
		for _, command := range commands {
			if !onlyReads.MatchString(command) {
				continue
			}
			if noJQ != nil && strings.Contains(command, "| jq") {
				leftOut++
				continue
			}
			filled, err := s.fillPlaceholders(ctx, command, vm)
			if err != nil {
				return err
			}
			ran++
			if out, err := s.runAs(ctx, "", "sh", "-c", filled); err != nil {
				failed = append(failed, fmt.Errorf("%s: %s: %w: %.300s", name, filled, err, out))
			}
		}
	}
	s.host.Logf("%d commands of runbooks were run, %d left out for want of jq", ran, leftOut)
	return errors.Join(failed...)
}

// onlyReads matches commands that change nothing, and need no pod of evictrail.
var onlyReads = regexp.MustCompile(`^kubectl (get|describe|auth can-i) `)

// listCommands returns the commands of an answer, which are indented, or those of a runbook, which stand in the text, too.
func (s *stage) listCommands(ctx context.Context, advice scenario.Advice) ([]string, error) {
	if advice.Runbook == "" {
		answer, err := s.askRecorder(ctx, cmp.Or(advice.Question, "why-not"), advice.VM)
		return indentedLines(answer, "  "), err
	}
	text, err := readRunbook(advice.Runbook)
	if err != nil {
		return nil, err
	}
	commands := indentedLines(text, "    ")
	for _, inText := range regexp.MustCompile("`((?:kubectl|virtctl) [^`]*)`").FindAllStringSubmatch(text, -1) {
		commands = append(commands, strings.Join(strings.Fields(inText[1]), " ")) // a line of text may end in it
	}
	return commands, nil
}

// Apply implements scenario.Stage.
func (s *stage) Apply(ctx context.Context, user, runbook string) error {
	text, err := readRunbook(runbook)
	if err != nil {
		return err
	}
	_, block, found := strings.Cut(text, "\n    apiVersion:")
	if !found {
		return fmt.Errorf("runbook %s: there is no manifest in it", runbook)
	}
	manifest, _, _ := strings.Cut("    apiVersion:"+block, "\n\n")
	path := filepath.Join(s.host.Dir, "manifest-"+runbook+".yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(manifest, "\n    ", "\n")[4:]), 0o600); err != nil {
		return err
	}
	if out, err := s.Kubectl(ctx, user, "apply", "-f", path); err != nil {
		return fmt.Errorf("apply the manifest of %s: %w: %s", runbook, err, out)
	}
	return nil
}

func readRunbook(name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(build.Root(), "docs/runbooks", name+".md"))
	return string(raw), err
}

func indentedLines(text, indent string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, indent) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// nodeToLeave returns the node that a VM must leave, or else that on which it runs; empty where it is stopped.
func (s *stage) nodeToLeave(ctx context.Context, vm string) (string, error) {
	o, err := s.VMI(ctx, namespace, vm)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	marked, _, _ := unstructured.NestedString(o.Object, "status", "evacuationNodeName")
	runs, _, _ := unstructured.NestedString(o.Object, "status", "nodeName")
	return cmp.Or(marked, runs), nil
}
