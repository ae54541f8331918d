package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/evictrail/evictrail/test/build"
)

func main() {
	out := flag.String("out", "", "`folder` to write the site into")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := buildSite(*out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// buildSite builds the site of the work tree into a folder. Files that are there and do not belong to the site stay.
func buildSite(out string) error {
	commands, err := readCommands()
	if err != nil {
		return err
	}
	s, err := newSite(os.DirFS(build.Root()), commands)
	if err != nil {
		return err
	}
	return s.write(out)
}

// readCommands returns the reference of the commands, from an evictrail built of the work tree. Defaults that depend on the user are those of
// anybody.
func readCommands() (string, error) {
	program, err := build.Evictrail()
	if err != nil {
		return "", fmt.Errorf("build evictrail: %w", err)
	}
	cmd := exec.Command(program, "generate", "cli-reference")
	cmd.Env, cmd.Stderr = []string{"HOME=~"}, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask evictrail for its commands: %w", err)
	}
	return string(text), nil
}
