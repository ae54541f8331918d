package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/remote"
)

// remoteFlags say where an HTTP server is that evictrail calls: NAME-url and its like.
type remoteFlags struct {
	name    string
	server  remote.Server
	where   string // in an error, what a URL says; empty: where it is
	example string // of a URL; empty: that of NAME.example
}

// addFlags adds the flags; about says what is done with the server at the URL.
func (f *remoteFlags) addFlags(cmd *cobra.Command, name, about string) {
	f.name = name
	flags := cmd.Flags()
	flags.StringVar(&f.server.URL, name+"-url", "", about)
	flags.StringVar(&f.server.TokenFile, name+"-token-file", "", "`file` with the bearer token to send there; read again when it changes")
	flags.StringVar(&f.server.CAFile, name+"-ca-file", "", "`file` with the CA of its certificate (PEM); read again when it changes")
	flags.BoolVar(&f.server.Insecure, name+"-insecure", false, "do not check its certificate")
}

// isSet reports whether there is a server.
func (f *remoteFlags) isSet() bool { return f.server.URL != "" }

// checkFlags refuses what cannot be called. More are other flags, without NAME-, that make no sense without a URL.
func (f *remoteFlags) checkFlags(cmd *cobra.Command, more ...string) error {
	if !f.isSet() {
		for _, flag := range slices.Concat([]string{"token-file", "ca-file", "insecure"}, more) {
			if cmd.Flags().Changed(f.name + "-" + flag) {
				return usageErrorf("%s-%s: say where %s with --%[1]s-url", f.name, flag, cmp.Or(f.where, "it is"))
			}
		}
		return nil
	}
	u, err := url.Parse(f.server.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return usageErrorf("%s-url %q: expected such as %s", f.name, f.server.URL, cmp.Or(f.example, "https://"+f.name+".example"))
	case u.User != nil:
		return usageErrorf("%s-url: no user or password in it: give a token with --%[1]s-token-file", f.name)
	case f.server.Insecure && f.server.CAFile != "":
		return usageErrorf("%s-insecure and %[1]s-ca-file exclude each other", f.name)
	}
	for flag, file := range map[string]string{"token-file": f.server.TokenFile, "ca-file": f.server.CAFile} {
		if file == "" {
			continue
		}
		if _, err := os.ReadFile(file); err != nil {
			return fmt.Errorf("%s-%s: %w", f.name, flag, err)
		}
	}
	return nil
}
