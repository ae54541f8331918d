package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := runRelease(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// allPlatforms are those of a release.
const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"

// options are the flags.
type options struct {
	out       string
	platforms []platform
	fresh     bool
	once      bool
	tagged    bool
}

func runRelease(ctx context.Context, args []string, progress io.Writer) error {
	var o options
	var platforms string
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&o.out, "out", "", "`folder` for the release; it must be empty or not there")
	flags.StringVar(&platforms, "platforms", allPlatforms, "`platforms` to build for, with commas")
	flags.BoolVar(&o.fresh, "fresh", false, "the second time, compile everything again: some minutes for each platform")
	flags.BoolVar(&o.once, "once", false, "make it once, without comparing")
	flags.BoolVar(&o.tagged, "tagged", false, "refuse a commit that has no tag of a version")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.out == "" || flags.NArg() > 0 {
		return errors.New("expected -out FOLDER and no other arguments; see -help")
	}
	var err error
	if o.platforms, err = parsePlatforms(platforms); err != nil {
		return err
	}
	return makeRelease(ctx, o, progress)
}

// makeRelease makes a release twice, compares, and moves the first into the folder.
func makeRelease(ctx context.Context, o options, progress io.Writer) (err error) {
	if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("folder %s is not empty: remove it, or name another one", o.out)
	}
	s, err := findSource(ctx, o.tagged)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "evictrail-release-")
	if err != nil {
		return fmt.Errorf("make work folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	writeProgress(progress, "evictrail %s of commit %s, %s", s.version, s.commit, s.time.Format(time.RFC3339))
	first := &release{source: s, platforms: o.platforms, progress: progress}
	first.checkout, first.out = filepath.Join(work, "first"), o.out
	if err := first.make(ctx); err != nil {
		return err
	}
	if o.once {
		return nil
	}
	second := &release{source: s, platforms: o.platforms, progress: progress}
	second.checkout, second.out = filepath.Join(work, "again", "in", "another folder"), filepath.Join(work, "out")
	if o.fresh {
		second.goCache = filepath.Join(work, "gocache")
	}
	if err := second.make(ctx); err != nil {
		return fmt.Errorf("make the release again: %w", err)
	}
	if err := compareSums(filepath.Join(first.out, sumsName), filepath.Join(second.out, sumsName)); err != nil {
		return err
	}
	writeProgress(progress, "made twice, and equal: %s", o.out)
	return nil
}

func writeProgress(progress io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(progress, "release: "+format+"\n", args...)
}

// platform is a system and an architecture, as Go calls them.
type platform struct{ OS, Arch string }

func (p platform) String() string { return p.OS + "/" + p.Arch }

func parsePlatforms(list string) ([]platform, error) {
	var all []platform
	for one := range strings.SplitSeq(list, ",") {
		system, arch, ok := strings.Cut(one, "/")
		if !ok || system == "" || arch == "" {
			return nil, fmt.Errorf("platform %q: expected SYSTEM/ARCHITECTURE, such as linux/amd64", one)
		}
		all = append(all, platform{system, arch})
	}
	return all, nil
}

// release is one making of a release.
type release struct {
	source
	platforms []platform
	checkout  string // folder of the commit's files
	out       string // folder of the finished files
	goCache   string // folder of Go's cache, or empty for the user's
	progress  io.Writer
	archives  []archive
}

// make makes all files of the release, the checksums last.
func (r *release) make(ctx context.Context) error {
	if err := os.MkdirAll(r.out, 0o750); err != nil {
		return fmt.Errorf("make release folder: %w", err)
	}
	if err := r.checkOut(ctx, r.checkout); err != nil {
		return err
	}
	if err := r.writeDocs(ctx); err != nil {
		return err
	}
	for _, p := range r.platforms {
		if err := r.makePlatform(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := r.packChart(ctx); err != nil {
		return err
	}
	if err := r.packPlugins(ctx); err != nil {
		return fmt.Errorf("plugins: %w", err)
	}
	if err := r.writeManifests(); err != nil {
		return err
	}
	if err := r.writeNotes(); err != nil {
		return err
	}
	return writeSums(r.out)
}

// makePlatform makes what there is of each platform.
func (r *release) makePlatform(ctx context.Context, p platform) error {
	start := time.Now()
	if err := r.buildProgram(ctx, p); err != nil {
		return err
	}
	if err := r.writeArchive(p); err != nil {
		return err
	}
	if err := r.writeSBOM(p); err != nil {
		return err
	}
	if p.OS == "linux" {
		if err := r.pack(ctx, p); err != nil {
			return err
		}
	}
	writeProgress(r.progress, "%s in %s", p, time.Since(start).Round(time.Second))
	return nil
}

// baseName is how the files of a platform begin.
func (r *release) baseName(p platform) string {
	return fmt.Sprintf("evictrail_%s_%s_%s", r.version, p.OS, p.Arch)
}

// stage is the folder with what is packed for a platform: program, manual pages, completions.
func (r *release) stage(p platform) string {
	return filepath.Join(r.checkout, "bin", "stage", p.OS+"-"+p.Arch)
}
