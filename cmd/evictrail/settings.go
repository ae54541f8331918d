package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func newSettings() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use: "settings [FINGERPRINT]", Short: "Show the settings in force, or those behind a fingerprint", GroupID: "ask", Args: asUsage(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		Long: `Show the settings that decide evictions and migrations: those of the KubeVirt CR, the descheduler's policy and MigrationPolicies, and which
rules follow from the versions of KubeVirt and of the descheduler. Eviction requests and evacuations name the settings that were in force by a
fingerprint, in the column policy. With a fingerprint, or a part of one, those are shown that have it, whenever they were in force; without one those in
force now or, with --at, then. Exit status 3 when there are none.`,
		Example: `  evictrail settings
  evictrail settings --at 2026-11-21T00:40:00Z
  evictrail settings 1a2b3c
  evictrail settings "kubevirt 1a2b3c, descheduler 4d5e6f" -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.checkOutput(); err != nil {
				return err
			}
			at, err := parseTime("at", q.at, time.Now())
			if err != nil {
				return err
			}
			asked := trail.SettingsQuery{Cluster: q.cluster, Fingerprint: strings.Join(args, ""), At: at}
			s, err := q.from.openSource(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			found, err := answerOne(cmd.Context(), s, func(ctx context.Context, r reader) ([]trail.SettingsInForce, error) {
				return r.Settings(ctx, asked)
			})
			switch {
			case err != nil:
				return err
			case len(found) == 0 && asked.Fingerprint != "":
				return fmt.Errorf("settings %q: %w: take the fingerprint from the column policy of `evictrail evacuations -o json`", asked.Fingerprint, trail.ErrNotFound)
			case len(found) == 0:
				return errNoSettings
			case q.output == "json":
				return api.WriteJSON(cmd.OutOrStdout(), found)
			}
			return writeSettings(cmd.OutOrStdout(), found)
		},
	}
	q.addFlags(cmd)
	return cmd
}

// errNoSettings says that there are no settings to show.
var errNoSettings = fmt.Errorf("settings: %w: none were seen so far, or you may not see them", trail.ErrNotFound)

// writeSettings writes settings for people: when they were in force, the rules that follow, and each sort of settings as YAML.
func writeSettings(out io.Writer, all []trail.SettingsInForce) error {
	for i, s := range all {
		if i > 0 {
			_, _ = fmt.Fprintln(out)
		}
		text := fmt.Sprintf("%s: %s\n%s\n%s\n", s.Cluster, s.Policy, settingsPeriod(s), wrapParagraph(s.Semantics))
		for _, part := range []struct {
			name     string
			settings any
			seen     bool
		}{
			{"KubeVirt", s.KubeVirt, s.KubeVirt != nil}, {"Descheduler", s.Descheduler, s.Descheduler != nil},
			{"Migration policies", s.MigrationPolicies, len(s.MigrationPolicies) > 0},
		} {
			if !part.seen {
				continue
			}
			raw, err := json.Marshal(part.settings)
			if err != nil {
				return err
			}
			prose, err := yaml.JSONToYAML(raw)
			if err != nil {
				return err
			}
			text += fmt.Sprintf("\n%s:\n  %s\n", part.name, strings.ReplaceAll(strings.TrimSpace(string(prose)), "\n", "\n  "))
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
}

// settingsPeriod says when settings were in force.
func settingsPeriod(s trail.SettingsInForce) string {
	switch {
	case s.From.IsZero() && s.Until.IsZero():
		return "In force since before they were first seen."
	case s.From.IsZero():
		return "In force until " + trail.FormatClock(s.Until) + ", and since before they were first seen."
	case s.Until.IsZero():
		return "In force since " + trail.FormatClock(s.From) + "."
	}
	return "In force from " + trail.FormatClock(s.From) + " to " + trail.FormatClock(s.Until) + "."
}

// restsText says below an answer which settings were in force and which rules it follows.
func restsText(r trail.Rests) string {
	text := "\n"
	if r.Policy != "" {
		text += wrapParagraph("Settings in force: "+r.Policy+".") + "\n"
	}
	return text + wrapParagraph("Rules: "+r.Semantics) + "\n"
}
