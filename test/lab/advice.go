package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
	"github.com/evictrail/evictrail/test/lab/scenario"
)

// Advice implements scenario.Stage. The command runs in a shell, as it is printed.
func (s *stage) Advice(ctx context.Context, user string, advice scenario.Advice) error {
	command, err := s.command(ctx, advice)
	if err != nil {
		return err
	}
	if out, err := s.run(ctx, user, "sh", "-c", command); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// command returns the command that is advised.
func (s *stage) command(ctx context.Context, advice scenario.Advice) (string, error) {
	commands, err := s.commands(ctx, advice)
	if err != nil {
		return "", err
	}
	commands = slices.DeleteFunc(commands, func(c string) bool { return !strings.Contains(c, advice.Contains) })
	if len(commands) != 1 {
		return "", fmt.Errorf("commands of %s that contain %q: expected one, got %q", cmp.Or(advice.Runbook, advice.Question, "why-not"), advice.Contains, commands)
	}
	if advice.Runbook == "" {
		return commands[0], nil
	}
	node, err := s.nodeToLeave(ctx, advice.VM)
	return strings.NewReplacer("NAMESPACE", namespace, "VM", advice.VM, "NODE", node).Replace(commands[0]), err
}

// commands returns the commands of an answer, which are indented, or those of a runbook, which stand in the text, too.
func (s *stage) commands(ctx context.Context, advice scenario.Advice) ([]string, error) {
	if advice.Runbook == "" {
		question := cmp.Or(advice.Question, "why-not")
		answer, err := s.recorder.Ask(ctx, question, namespace+"/"+advice.VM)
		if err != nil {
			return nil, fmt.Errorf("evictrail %s %s/%s: %w: %s", question, namespace, advice.VM, err, answer)
		}
		return indentedLines(answer, "  "), nil
	}
	text, err := readRunbook(advice.Runbook)
	if err != nil {
		return nil, err
	}
	commands := indentedLines(text, "    ")
	for _, inText := range regexp.MustCompile("`((?:kubectl|virtctl) [^`]*)`").FindAllStringSubmatch(text, -1) {
		commands = append(commands, inText[1])
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
	raw, err := os.ReadFile(filepath.Join(kubetest.Root(), "docs/runbooks", name+".md"))
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
