package main

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

var colorChoices = []string{colorAuto, colorAlways, colorNever}

// addColorFlag adds --color.
func addColorFlag(cmd *cobra.Command, color *string) {
	cmd.Flags().StringVar(color, "color", colorAuto, "bold and red for what is open: `when` to show them: auto (on a terminal, without NO_COLOR in the environment), always or never")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colorChoices, cobra.ShellCompDirectiveNoFileComp))
}

// terminal is what a command writes to. The zero value is a file or a pipe: it has no width, and shows no colours.
type terminal struct {
	interactive bool
	width       int // in columns; 0: lines may have any length
	height      int // in lines
	color       bool
}

// detectTerminal returns what is known of an output. COLUMNS has precedence over the width that a terminal reports.
func detectTerminal(out io.Writer, color string) terminal {
	t := terminal{color: color == colorAlways}
	file, is := out.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return t
	}
	t.interactive = true
	t.width, t.height, _ = term.GetSize(int(file.Fd()))
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		t.width = columns
	}
	if color == colorAuto {
		t.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return t
}

// textStyle is how text stands out on a terminal, as the parameters of SGR.
type textStyle string

// The styles.
const (
	stylePlain   textStyle = ""
	styleDim     textStyle = "2"
	styleOpen    textStyle = "1"    // bold: it is not over
	styleProblem textStyle = "1;31" // bold and red: somebody has to look
	styleChosen  textStyle = "7"    // reversed
)

// applyTo returns the lines in this style, each for itself.
func (s textStyle) applyTo(lines string) string {
	if s == stylePlain || lines == "" {
		return lines
	}
	styled := strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\x1b[0m\n\x1b["+string(s)+"m")
	return "\x1b[" + string(s) + "m" + styled + "\x1b[0m" + lines[len(strings.TrimSuffix(lines, "\n")):]
}
