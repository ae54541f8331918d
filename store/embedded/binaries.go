package embedded

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

const (
	binEnv        = "EVICTRAIL_PG_BIN"
	oldestMajor   = 15
	installAdvice = "install one (Debian and Ubuntu: apt-get install postgresql-15 or postgresql; Fedora: dnf install postgresql-server; " +
		"macOS: brew install postgresql@16), set " + binEnv + " to its bin directory, or use a database of your own with --database-url"
)

// packagedServers are where packages put versions side by side.
var packagedServers = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // PGDG packages for Fedora and its relatives
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on arm64
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on amd64
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*)`)

// binaries are one installed server.
type binaries struct {
	dir     string // absolute
	version string // 15.18, 18beta1
	major   int
}

func (b binaries) path(name string) string { return filepath.Join(b.dir, name) }

// place is somewhere to look for servers. Its dirs may be empty, missing or anything else; at equal versions the first
// counts.
type place struct {
	name string
	dirs func(context.Context) []string
}

// searchPlaces are in the order in which they are asked, cheap ones first. A directory that the user names is the only
// place: to run another server than the one asked for would be a surprise.
func searchPlaces() []place {
	if dir := os.Getenv(binEnv); dir != "" {
		return []place{{name: "$" + binEnv, dirs: func(context.Context) []string { return []string{dir} }}}
	}
	return []place{
		{name: "pg_config --bindir", dirs: func(ctx context.Context) []string { return readOutputLine(ctx, "pg_config", "--bindir") }},
		{name: strings.Join(packagedServers, ", "), dirs: globPackaged},
		{name: "$PATH", dirs: lookPath},
		{name: "npm package " + npmPackage(), dirs: func(context.Context) []string { return []string{npmBin("node_modules")} }},
		{name: "global npm package " + npmPackage(), dirs: globalNPM},
	}
}

// findServer returns the newest server of the first place that has one.
func findServer(ctx context.Context, places []place) (binaries, error) {
	var looked []string
	for _, p := range places {
		var best binaries
		var notes []string
		for _, dir := range p.dirs(ctx) {
			b, err := inspectBinaries(ctx, dir)
			if err != nil {
				notes = append(notes, err.Error())
			} else if b.major > best.major {
				best = b
			}
		}
		if best.major > 0 {
			return best, nil
		}
		looked = append(looked, fmt.Sprintf("%s (%s)", p.name, cmp.Or(strings.Join(notes, ", "), "nothing")))
	}
	if err := ctx.Err(); err != nil {
		return binaries{}, fmt.Errorf("look for a PostgreSQL server: %w", err)
	}
	return binaries{}, fmt.Errorf("%w: looked at %s: %s", ErrNoServer, strings.Join(looked, "; "), installAdvice)
}

// inspectBinaries returns the server in the directory, when it is complete and not too old.
func inspectBinaries(ctx context.Context, dir string) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	b := binaries{dir: dir}
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(b.path(name)); err != nil {
			return binaries{}, err
		}
	}
	out, err := exec.CommandContext(ctx, b.path("postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("%s --version: %w", b.path("postgres"), err)
	}
	match := versionPattern.FindStringSubmatch(string(out))
	if match == nil {
		return binaries{}, fmt.Errorf("%s --version: %q", b.path("postgres"), out)
	}
	b.version = match[1]
	if b.major, err = strconv.Atoi(match[2]); err != nil || b.major < oldestMajor {
		return binaries{}, fmt.Errorf("%s: version %s: must be %d or newer", dir, b.version, oldestMajor)
	}
	return b, nil
}

func globPackaged(context.Context) []string {
	var dirs []string
	for _, pattern := range packagedServers {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		dirs = append(dirs, found...)
	}
	return dirs
}

func lookPath(context.Context) []string {
	path, err := exec.LookPath("postgres")
	if err != nil {
		return nil
	}
	return []string{filepath.Dir(path)}
}

func globalNPM(ctx context.Context) []string {
	var dirs []string
	for _, root := range readOutputLine(ctx, "npm", "root", "-g") {
		dirs = append(dirs, npmBin(root))
	}
	return dirs
}

// npmPackage holds real server binaries. It is called after Node's names of operating systems and processors.
func npmPackage() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return "@embedded-postgres/" + runtime.GOOS + "-" + arch
}

func npmBin(root string) string { return filepath.Join(root, npmPackage(), "native", "bin") }

// readOutputLine is the one line that a command prints; nothing when the command is missing or fails.
func readOutputLine(ctx context.Context, name string, args ...string) []string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	line := strings.TrimSpace(string(out))
	if err != nil || line == "" {
		return nil
	}
	return []string{line}
}
