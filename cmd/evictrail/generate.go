package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/evictrail/evictrail/cmd/evictrail/config"
	"github.com/evictrail/evictrail/deploy"
)

func newGenerate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "generate", Short: "Write the files that evictrail needs around it", GroupID: "keep", Args: refuseUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newGenerateManifests(), newGenerateAlerts(), newGenerateDashboards(), newGenerateReference(), newGenerateMan()} {
		sub.Flags().SetNormalizeFunc(oldNames)
		cmd.AddCommand(sub)
	}
	return cmd
}

// oldNames understands the name that a flag had first.
func oldNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "output-dir" {
		name = "dir"
	}
	return pflag.NormalizedName(name)
}

// manifestFlags are those of "evictrail generate manifests".
type manifestFlags struct {
	options deploy.Options
	caFile  string
	secret  string
	dir     string
}

func newGenerateManifests() *cobra.Command {
	f := manifestFlags{options: deploy.DefaultOptions()}
	cmd := &cobra.Command{
		Use: "manifests [NAME...]", Short: "Print what makes kube-apiservers report requests to evictrail", Args: asUsage(cobra.ArbitraryArgs),
		Long: `Print the named manifests, by default all, as YAML documents. Nothing is applied. The first two are files for the machines
of the control plane, the others are for kubectl:

` + formatCompletions(16, manifestChoice()) + `
docs/audit.md says how to use them on which platform.`,
		Example: `  evictrail generate manifests audit-policy > audit-policy.yaml
  evictrail generate manifests --dir evictrail-files --ca-file ca.crt
  evictrail generate manifests observer --ca-file ca.crt --admission-secret-file secret | kubectl apply -f -
  evictrail generate manifests observer --observer-url https://evictrail.example:9443 --ca-file ca.crt --admission-secret-file secret   # evictrail outside the cluster`,
		ValidArgsFunction: completeManifests,
		RunE:              f.run,
	}
	o, flags := &f.options, cmd.Flags()
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "`namespace` of evictrail's Service")
	flags.StringVar(&o.Service, "service", o.Service, "`name` of the Service")
	flags.IntVar(&o.Port, "port", o.Port, "`port` of the Service")
	config.LeaveToCommandLine(flags, "port") // Kubernetes sets EVICTRAIL_PORT where a Service is called evictrail
	flags.StringVar(&o.URL, "url", "", "https `URL` of evictrail, instead of a Service")
	flags.StringVar(&f.caFile, "ca-file", "", "`file` with the CA of evictrail's certificate (PEM); without it a comment says where it belongs")
	flags.IntVar(&o.ObserverPort, "observer-port", o.ObserverPort, "`port` of the Service for reviews, to which --admission-listen listens")
	flags.StringVar(&o.ObserverURL, "observer-url", "", "https `URL` of --admission-listen, instead of a Service")
	flags.StringVar(&f.secret, "admission-secret-file", "", "`file` with the secret that evictrail knows API servers by (its first line); made where there is none")
	flags.StringVar(&o.PolicyName, "policy-name", o.PolicyName, "`name` of the ValidatingAdmissionPolicy")
	addDir(cmd, &f.dir, "a file NAME.yaml for each")
	return cmd
}

// manifestChoice names the manifests, each with what it is.
func manifestChoice() []cobra.Completion {
	var all []cobra.Completion
	for _, m := range deploy.Manifests() {
		all = append(all, cobra.CompletionWithDesc(m.Name, m.Short))
	}
	return all
}

func completeManifests(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return withoutGiven(manifestChoice(), given)
}

func (f *manifestFlags) run(cmd *cobra.Command, names []string) error {
	names, err := manifestNames(names)
	if err != nil {
		return err
	}
	if err := f.checkFlags(cmd); err != nil {
		return err
	}
	if slices.Contains(names, deploy.Observer) {
		if err := f.readSecret(); err != nil {
			return err
		}
	}
	var files []textFile
	for _, name := range names {
		text, err := deploy.YAML(name, f.options)
		if err != nil {
			return err
		}
		files = append(files, textFile{name + ".yaml", text})
	}
	return outputFiles(cmd.OutOrStdout(), f.dir, files)
}

// readSecret reads the secret of the observer's path. Where its file is missing it is made, with one that cannot be guessed.
func (f *manifestFlags) readSecret() error {
	switch _, err := os.Stat(f.secret); {
	case f.options.URL != "" && f.options.ObserverURL == "":
		return usageErrorf("url: reviews have an address of their own (--admission-listen): give it with --observer-url")
	case f.secret == "":
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err := os.WriteFile(f.secret, []byte(strings.ToLower(rand.Text()+rand.Text())+"\n"), 0o600); err != nil {
			return fmt.Errorf("make admission secret: %w", err)
		}
	}
	secrets, err := readSecrets(f.secret)
	if err != nil {
		return err
	}
	f.options.Secret = secrets[0]
	return nil
}

// manifestNames returns the names that were asked for, all where none was, each once.
func manifestNames(asked []string) ([]string, error) {
	var known, names []string
	for _, m := range deploy.Manifests() {
		known = append(known, m.Name)
	}
	for _, name := range asked {
		if !slices.Contains(known, name) {
			return nil, usageErrorf("manifest %q: expected one of %s", name, strings.Join(known, ", "))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return known, nil
	}
	return names, nil
}

// checkFlags reads the CA and says what cannot be.
func (f *manifestFlags) checkFlags(cmd *cobra.Command) error {
	for _, flag := range []string{"namespace", "service", "port"} {
		if f.options.URL != "" && cmd.Flags().Changed(flag) {
			return usageErrorf("%s says where a Service is, url that there is none: give one of them", flag)
		}
	}
	if f.caFile != "" {
		var err error
		if f.options.CA, err = os.ReadFile(f.caFile); err != nil {
			return fmt.Errorf("read CA: %w", err)
		}
	}
	if err := f.options.Check(); err != nil {
		return usageErrorf("%w", err)
	}
	return nil
}
