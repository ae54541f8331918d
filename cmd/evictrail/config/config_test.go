package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/cmd/evictrail/config"
)

// flags are those of a command with a flag of each sort.
type flags struct {
	*pflag.FlagSet
	cluster, url string
	pages        []string
	keep         time.Duration
	most         int
	insecure     bool
}

func newFlags(t *testing.T, args ...string) *flags {
	t.Helper()
	f := &flags{FlagSet: pflag.NewFlagSet("run", pflag.ContinueOnError)}
	f.StringVar(&f.cluster, "cluster", "", "`name` of the cluster")
	f.StringVar(&f.url, "database-url", "", "`URL` of the database")
	f.StringArrayVar(&f.pages, "console-url", []string{"https://default.example"}, "`URL` of a page")
	f.DurationVar(&f.keep, "keep-facts", time.Hour, "`duration`")
	f.IntVar(&f.most, "most", 5, "`N`")
	f.BoolVar(&f.insecure, "insecure", false, "whether")
	f.String(config.FileFlag, "", "`file`")
	f.Bool("all", false, "of the command line")
	config.LeaveToCommandLine(f.FlagSet, "all")
	require.NoError(t, f.Parse(args))
	return f
}

const header = "apiVersion: evictrail.dev/v1alpha1\nkind: RunConfiguration\n"

// complete completes flags from an environment and the text of a file; none where it is empty.
func (f *flags) complete(environment map[string]string, file string) error {
	return config.Complete(f.FlagSet, func(name string) string { return environment[name] }, func() (*config.File, error) {
		if file == "" {
			return nil, nil
		}
		return config.Decode("evictrail.yaml", strings.NewReader(file))
	})
}

func TestTheCommandLineWinsThenTheEnvironmentThenTheFile(t *testing.T) {
	t.Parallel()
	f := newFlags(t, "--cluster", "line", "--console-url", "https://line.example")
	require.NoError(t, f.complete(map[string]string{
		"EVICTRAIL_CLUSTER": "environment", "EVICTRAIL_KEEP_FACTS": "2h", "EVICTRAIL_MOST": "", "EVICTRAIL_ALL": "true",
	}, header+"cluster: file\nkeep-facts: 3h\nmost: 7\ninsecure: true\nconsole-url: [https://file.example]\n"))
	require.Equal(t, "line", f.cluster)
	require.Equal(t, []string{"https://line.example"}, f.pages)
	require.Equal(t, 2*time.Hour, f.keep)
	require.Equal(t, 7, f.most)
	require.True(t, f.insecure)
	for name, origin := range map[string]config.Origin{
		"cluster": {config.CommandLine, ""}, "keep-facts": {config.Environment, "EVICTRAIL_KEEP_FACTS"},
		"most": {config.InFile, "evictrail.yaml:5"}, "database-url": {config.Default, ""}, "all": {config.Default, ""},
	} {
		require.Equal(t, origin, config.OriginOf(f.Lookup(name)), name)
	}
	require.True(t, f.Changed("most"), "what a file says was said of this command")
	require.False(t, f.Changed("keep-facts"), "variables are shared by all commands")
}

func TestAFlagThatMayBeRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environment map[string]string
		file        string
		want        []string
	}{
		"default":       {want: []string{"https://default.example"}},
		"a list":        {file: "console-url:\n- https://a.example\n- https://b.example/{name},x\n", want: []string{"https://a.example", "https://b.example/{name},x"}},
		"one value":     {file: "console-url: https://a.example\n", want: []string{"https://a.example"}},
		"an empty list": {file: "console-url: []\n", want: []string{}},
		"a map":         {file: "console-url: {a: 1, b: 20m}\n", want: []string{"a=1", "b=20m"}},
		"a variable":    {environment: map[string]string{"EVICTRAIL_CONSOLE_URL": "https://a.example,1\nhttps://b.example\n"}, want: []string{"https://a.example,1", "https://b.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlags(t)
			require.NoError(t, f.complete(c.environment, header+c.file))
			require.Equal(t, c.want, f.pages)
		})
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environment map[string]string
		file, says  string
	}{
		"a misspelt setting":   {file: header + "clutser: a\n", says: `evictrail.yaml:3: clutser: there is no such setting; did you mean cluster?`},
		"an unknown setting":   {file: header + "colour-of-the-bikeshed: a\n", says: "evictrail.yaml:3: colour-of-the-bikeshed: there is no such setting; `evictrail config print --all` lists all"},
		"a file in a file":     {file: header + "config: a\n", says: "evictrail.yaml:3: config: there is no such setting"},
		"not for files":        {file: header + "all: true\n", says: "evictrail.yaml:3: all: there is no such setting"},
		"twice":                {file: header + "cluster: a\nmost: 1\ncluster: b\n", says: "evictrail.yaml:5: cluster stands in line 3 already"},
		"a wrong value":        {file: header + "keep-facts: soon\n", says: `evictrail.yaml:3: keep-facts "soon": time: invalid duration "soon"`},
		"no truth":             {file: header + "insecure: perhaps\n", says: `evictrail.yaml:3: insecure "perhaps": expected true or false`},
		"a list for one":       {file: header + "cluster: [a, b]\n", says: "evictrail.yaml:3: cluster: expected one value"},
		"a list of one":        {file: header + "cluster: [a]\n", says: "evictrail.yaml:3: cluster: expected one value"},
		"nothing":              {file: header + "cluster:\n", says: "evictrail.yaml:3: cluster: expected a value"},
		"a list of lists":      {file: header + "console-url: [[a]]\n", says: "evictrail.yaml:3: console-url: expected a value"},
		"an alias":             {file: header + "cluster: &a x\ndatabase-url: *a\n", says: "evictrail.yaml:4: database-url: anchors and aliases are not supported"},
		"a merge":              {file: header + "<<: {cluster: a}\n", says: "evictrail.yaml:3: expected the name of a setting"},
		"another version":      {file: "apiVersion: evictrail.dev/v2\nkind: RunConfiguration\n", says: `evictrail.yaml: apiVersion "evictrail.dev/v2" and kind "RunConfiguration": it begins with`},
		"another kind":         {file: "apiVersion: evictrail.dev/v1alpha1\nkind: Deployment\n", says: `kind "Deployment"`},
		"no header":            {file: "cluster: a\n", says: `apiVersion "" and kind ""`},
		"no YAML":              {file: "cluster: a: b\n", says: "evictrail.yaml: yaml:"},
		"a list":               {file: "- a\n", says: "evictrail.yaml: expected settings"},
		"only a comment":       {file: "# later\n", says: "evictrail.yaml: expected settings"},
		"two documents":        {file: header + "---\n" + header, says: "evictrail.yaml: more than one document"},
		"too large":            {file: strings.Repeat("# a\n", 300_000), says: "evictrail.yaml: more than 1048576 bytes"},
		"a wrong variable":     {environment: map[string]string{"EVICTRAIL_MOST": "many"}, says: `EVICTRAIL_MOST "many": strconv.ParseInt`},
		"a variable, no truth": {environment: map[string]string{"EVICTRAIL_INSECURE": "yes"}, says: `EVICTRAIL_INSECURE "yes": expected true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, newFlags(t).complete(c.environment, c.file), c.says)
		})
	}
}

// TestWhatIsWrittenIsRead writes flags as a file and reads it: the values are the same, but for a password.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	f := newFlags(t, "--cluster", "a: b # c", "--console-url", "https://c.example/{name},x", "--console-url", "true", "--most", "8")
	require.NoError(t, f.complete(map[string]string{"EVICTRAIL_INSECURE": "true", "EVICTRAIL_DATABASE_URL": "postgres://u:canary@h/d?password=canary"}, ""))
	for _, all := range []bool{false, true} {
		text, err := config.Write(f.FlagSet, all)
		require.NoError(t, err)
		require.NotContains(t, text, "canary")
		require.Equal(t, all, strings.Contains(text, "# keep-facts: 1h0m0s"), text)
		require.Contains(t, text, "insecure: true # environment EVICTRAIL_INSECURE")
		require.Contains(t, text, "most: 8 # command line")
		read := newFlags(t)
		require.NoError(t, read.complete(nil, text), text)
		require.Equal(t, f.cluster, read.cluster)
		require.Equal(t, f.pages, read.pages)
		require.Equal(t, []any{8, true, time.Hour}, []any{read.most, read.insecure, read.keep})
		require.Equal(t, "postgres://u:xxxxx@h/d?password=xxxxx", read.url)
	}
}

// FuzzDecode has no file crash what reads it, and each setting that is read has its line.
func FuzzDecode(f *testing.F) {
	f.Add(header + "cluster: a\nconsole-url: [a, b]\nloop: {a: 1}\n")
	f.Add(header + "a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.Decode("f", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range file.Settings {
			require.True(t, s.Line >= 1 && s.Line <= 1+strings.Count(text, "\n")+strings.Count(text, "\r"), s)
		}
		_ = newFlags(t).complete(nil, text)
	})
}
