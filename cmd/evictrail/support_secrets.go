package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	secretFileFlag = regexp.MustCompile(`(password|token|secret|key)s?-file$`)
	secretVariable = regexp.MustCompile(`(?i)(password|passwd|token|secret|key)s?$`)
	passwordWord   = regexp.MustCompile(`(?i)\bpassword\s*=\s*(?:'((?:[^'\\]|\\.)*)'|([^\s&']+))`)
	pgpassLine     = regexp.MustCompile(`^(?:(?:\\.|[^:\\])*:){4}(.+)$`)
)

// listSecrets returns what is known to be secret: what stands in the files that flags name, in URLs of flags and
// variables, in variables that are named so, in the files of passwords of Postgres, and what the kubeconfig has.
func (f *supportFlags) listSecrets(cmd *cobra.Command) []string {
	var all []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, is := flag.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, value := range values {
			all = append(all, findPasswords(value)...)
			if secretFileFlag.MatchString(flag.Name) {
				all = append(all, readSecretWords(value)...)
			}
		}
	})
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		all = append(all, findPasswords(value)...)
		if secretVariable.MatchString(name) {
			all = append(all, value)
		}
	}
	home, _ := os.UserHomeDir()
	for _, path := range []string{os.Getenv("PGPASSFILE"), filepath.Join(home, ".pgpass")} {
		all = append(all, readSecretWords(path)...)
	}
	secrets, files := f.kube.listSecrets()
	all = append(all, secrets...)
	for _, path := range files {
		all = append(all, readSecretWords(path)...)
	}
	return all
}

// findPasswords returns the passwords in a URL, or in a keyword string of Postgres.
func findPasswords(text string) []string {
	var all []string
	if u, err := url.Parse(text); err == nil {
		password, _ := u.User.Password()
		all = append(all, password, u.Query().Get("password"), u.Query().Get("sslpassword"))
	}
	for _, found := range passwordWord.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1], found[2])
	}
	return all
}

// readSecretWords returns what a file of passwords, tokens or a key has: its lines, the words in them, and where it
// is a pgpass file its passwords. A file that cannot be read has none.
func readSecretWords(path string) []string {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // files that the caller names are read to hide what is in them
	if err != nil || len(text) > 1<<20 {
		return nil
	}
	all := strings.Fields(string(text))
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		all = append(all, line)
		if found := pgpassLine.FindStringSubmatch(line); found != nil {
			all = append(all, found[1], strings.NewReplacer(`\:`, ":", `\\`, `\`).Replace(found[1]))
		}
	}
	return all
}
