package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/evictrail/evictrail/cmd/evictrail/config"
)

// liveSettings are those whose change needs no restart.
var liveSettings = []string{"log-level", "keep-facts", "keep-rows", "keep-requesters"}

// reloader reads the configuration file again at each SIGHUP.
type reloader struct {
	f     *runFlags
	cmd   *cobra.Command
	asked chan os.Signal
}

// listenForReloads has SIGHUP no longer end the process, where there is a file to read again, until end is called. What run uses is as the
// flags say from now on.
func (f *runFlags) listenForReloads(cmd *cobra.Command) (r *reloader, end func()) {
	f.applyLiveSettings()
	r = &reloader{f, cmd, make(chan os.Signal, 1)}
	if f.config != "" {
		signal.Notify(r.asked, syscall.SIGHUP)
	}
	return r, func() { signal.Stop(r.asked) }
}

// run reloads when it is asked to, until ctx ends.
func (r *reloader) run(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-r.asked:
		case <-ctx.Done():
			return
		}
		changed, later, err := r.f.reloadConfig(r.cmd)
		if err != nil {
			log.Error("configuration not reloaded: what was read before stays in force", "file", r.f.config, "err", err)
			continue
		}
		if len(later) > 0 {
			log.Warn("settings have changed in the configuration file that need a restart of evictrail", "settings", later)
		}
		log.Info("configuration reloaded", "file", r.f.config, "settings", changed)
	}
}

// reloadConfig reads the configuration file again and applies the settings that have changed and may change now. Those that need a restart are
// returned as later. After an error nothing has changed.
func (f *runFlags) reloadConfig(cmd *cobra.Command) (changed, later []string, err error) {
	fresh, again := &runFlags{}, &cobra.Command{Use: cmd.Use}
	fresh.addFlags(again)
	if err := config.CopyCommandLine(cmd.Flags(), again.Flags()); err != nil {
		return nil, nil, err
	}
	if err := completeFlags(again); err != nil {
		return nil, nil, err
	}
	if err := fresh.checkConfig(again); err != nil { // it completes some, as it did when run began
		return nil, nil, err
	}
	for _, name := range listDifferences(cmd.Flags(), again.Flags()) {
		if !slices.Contains(liveSettings, name) {
			later = append(later, name)
			continue
		}
		changed = append(changed, name)
		if err := cmd.Flags().Lookup(name).Value.Set(again.Flags().Lookup(name).Value.String()); err != nil {
			return nil, nil, err
		}
	}
	f.applyLiveSettings()
	return changed, later, nil
}

// applyLiveSettings has what runs use the live settings that the flags have.
func (f *runFlags) applyLiveSettings() {
	if level, err := f.log.parseLevel(); err == nil {
		f.log.inForce.Set(level)
	}
	policy := f.retention.newPolicy()
	f.retained.Store(&policy)
}

// listDifferences returns the names of the flags whose values differ.
func listDifferences(before, after *pflag.FlagSet) (names []string) {
	after.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() != before.Lookup(f.Name).Value.String() {
			names = append(names, f.Name)
		}
	})
	return names
}
