package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newGenerateReference makes the command that prints the page of the documentation site about the commands. It is for who builds that
// site (test/site), so help does not list it.
func newGenerateReference() *cobra.Command {
	return &cobra.Command{
		Use: "cli-reference", Short: "Print what every command does, as Markdown", Hidden: true, Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), renderReference(cmd.Root()))
			return err
		},
	}
}

// renderReference returns a page about the commands below root, by their groups and then by name. What help hides is left out.
func renderReference(root *cobra.Command) string {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "# Commands\n\n%s\n%s\n", escapeMarkdown(root.Long), renderCode(root.Example))
	_, _ = fmt.Fprintf(&out, "Every command has `-h`, `--help`.\n\n| Exit status | Meaning |\n|---|---|\n")
	for _, s := range exitStatuses {
		_, _ = fmt.Fprintf(&out, "| %d | %s |\n", s.status, s.meaning)
	}
	for _, group := range root.Groups() {
		_, _ = fmt.Fprintf(&out, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID {
				writeCommand(&out, cmd)
			}
		}
	}
	return out.String()
}

// writeCommand writes the section of a command and those of the commands below it.
func writeCommand(out *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Deprecated != "" {
		return
	}
	_, _ = fmt.Fprintf(out, "\n### %s\n", cmd.CommandPath())
	if !strings.HasPrefix(cmd.Long, cmd.Short) {
		_, _ = fmt.Fprintf(out, "\n%s.\n", escapeMarkdown(cmd.Short))
	}
	if !cmd.HasSubCommands() {
		out.WriteString(renderCode(cmd.UseLine()))
	}
	out.WriteString(renderText(cmd.Long))
	if cmd.Example != "" {
		out.WriteString("\nExamples:\n" + renderCode(cmd.Example))
	}
	writeFlags(out, cmd.LocalFlags())
	for _, sub := range cmd.Commands() {
		writeCommand(out, sub)
	}
}

// renderText returns what help says of a command as Markdown, with a line before each paragraph. What lines up stays as it is.
func renderText(text string) string {
	if text == "" {
		return ""
	}
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, "  ") || strings.HasPrefix(paragraph, "\t") { // columns that line up, or a command
			out.WriteString(renderCode(paragraph))
		} else {
			_, _ = fmt.Fprintf(&out, "\n%s\n", escapeMarkdown(paragraph))
		}
	}
	return out.String()
}

// writeFlags writes a table of flags, without --help. A default that is nothing is left out, as help does.
func writeFlags(out *strings.Builder, flags *pflag.FlagSet) {
	header := "\n| Flag | Meaning |\n|---|---|\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name, meaning := strings.TrimSpace("--"+f.Name+" "+value), escapeMarkdown(usage)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			meaning += " (default `" + f.DefValue + "`)"
		}
		_, _ = fmt.Fprintf(out, "%s| `%s` | %s |\n", header, name, meaning)
		header = ""
	})
}

// renderCode returns lines as they are, but for the indentation that help adds.
func renderCode(lines string) string {
	indent := lines[:len(lines)-len(strings.TrimLeft(lines, " \t"))]
	return "\n```\n" + strings.TrimPrefix(strings.ReplaceAll("\n"+lines, "\n"+indent, "\n"), "\n") + "\n```\n"
}

var (
	markdownSigns = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`, "|", `\|`, "&", `\&`, "~", `\~`)
	flagName      = regexp.MustCompile(`--[a-z]+(-[a-z]+)*`)
)

// escapeMarkdown writes text so that Markdown shows it as it is, with names of flags as code.
func escapeMarkdown(text string) string {
	return flagName.ReplaceAllString(markdownSigns.Replace(text), "`$0`")
}
