package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

func newWeekly() *cobra.Command {
	var q question
	asked := trail.WeeklyQuery{Weeks: trail.UsualWeeks, Target: trail.UsualTarget}
	var until string
	cmd := &cobra.Command{
		Use:     "weekly",
		Short:   "Report week by week: downtimes, objectives and error budgets, cost of migrations",
		GroupID: "ask",
		Args:    asUsage(cobra.NoArgs),
		Long: `Report what happened week by week, by namespace: for how long VMs did not run, how many evacuations met their
objective and what is left of the error budget, and what migrations cost. The views weekly_downtimes,
weekly_objectives and weekly_move_costs have the same by cause, requester and node. Callers who may see only some
namespaces see these, without pools of nodes. Exit status 3 when nothing happened, or there is no such cluster.`,
		Example: `  evictrail weekly
  evictrail weekly --namespace shop --weeks 12
  evictrail weekly --target 99.5 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asked.Cluster = q.cluster
			var err error
			if asked.Until, err = parseTime("until", until, nowUTC()); err != nil {
				return err
			}
			if asked.Weeks == 0 || asked.Target == 0 {
				return usageErrorf(
					"weeks %d, target %v: expected 1 or more weeks, and a share in percent",
					asked.Weeks,
					asked.Target,
				)
			}
			if err := asked.Bound(); err != nil {
				return usageErrorf("%w", err)
			}
			return q.askAll(cmd, func(ctx context.Context, s reader) (any, string, error) {
				all, err := loadWeekly(ctx, s, asked)
				return all, renderWeekly(all), err
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&asked.Namespace, "namespace", "n", "", "only VMs of this `namespace`")
	f.IntVar(
		&asked.Weeks,
		"weeks",
		asked.Weeks,
		fmt.Sprintf("report `N` weeks, at most %d, the present one among them", trail.MostWeeks),
	)
	f.StringVar(
		&until,
		"until",
		"",
		"a `time` or an age in the last week; by default now, or when the cluster was last seen",
	)
	f.Float64Var(
		&asked.Target,
		"target",
		asked.Target,
		"share of evacuations, in `percent`, that is to keep to its objective",
	)
	q.addPresentFlags(cmd)
	return cmd
}

// loadWeekly returns what happened week by week. The error is trail.ErrNotFound where nothing did.
func loadWeekly(ctx context.Context, s api.Reader, q trail.WeeklyQuery) ([]trail.Weekly, error) {
	all, err := s.Weekly(ctx, q)
	if err == nil && !slices.ContainsFunc(all, func(w trail.Weekly) bool { return !w.Empty() }) {
		if err = checkCluster(ctx, s, q.Cluster); err == nil {
			err = fmt.Errorf(
				"weekly: %w: nothing happened in %s; `evictrail timeline` shows what was recorded before",
				trail.ErrNotFound,
				trail.FormatCount(q.Weeks, "week"),
			)
		}
	}
	return slices.Concat([]trail.Weekly{}, all), err
}

// renderWeekly returns three tables for each cluster: downtimes, objectives, and the cost of migrations.
func renderWeekly(all []trail.Weekly) string {
	text := ""
	for i := range all {
		w := &all[i]
		if len(all) > 1 {
			text += "\n" + w.Cluster + "\n"
		}
		text += asOf(w.To) + recordingText(w.Recorder, w.NotObserved)
		if w.Empty() {
			text += "Nothing happened from " + w.From.Format(time.DateOnly) + " on.\n"
			continue
		}
		text += renderWeeklyTable(
			"Downtimes",
			w.Downtimes,
			[]string{"UNPLANNED", "DOWN", "PLANNED", "DOWN"},
			func(d trail.WeeklyDowntimes) (time.Time, []string) {
				return d.Week, []string{
					d.Namespace,
					strconv.Itoa(d.Unplanned),
					trail.Age(time.Duration(d.UnplannedTime)),
					strconv.Itoa(d.Planned),
					trail.Age(time.Duration(d.PlannedTime)),
				}
			},
		)
		text += renderWeeklyTable(
			"Objectives of evacuations",
			w.Objectives,
			[]string{"POOL", "MET", "MISSED", "BUDGET LEFT"},
			func(o trail.WeeklyObjectives) (time.Time, []string) {
				return o.Week, []string{
					o.Namespace,
					renderCell("text", o.Pool),
					strconv.Itoa(o.Met),
					strconv.Itoa(o.Missed),
					o.BudgetText(),
				}
			},
		)
		text += renderWeeklyTable(
			"Cost of migrations",
			w.Moves,
			[]string{"MOVED", "FAILED", "NOT NEEDED", "RESERVED", "COPIED"},
			func(m trail.WeeklyMoves) (time.Time, []string) {
				return m.Week, []string{
					m.Namespace,
					strconv.Itoa(m.Moves),
					strconv.Itoa(m.Failed),
					strconv.Itoa(m.NotNeeded),
					trail.Age(time.Duration(m.ReservedTime)),
					renderCell("text", m.BytesText()),
				}
			},
		)
	}
	if len(all) > 0 {
		text += "\n" + wrapParagraph(all[0].Rests()) + "\n"
	}
	return text
}

// renderWeeklyTable returns a heading and a table of rows by week and namespace; nothing where there are no rows.
func renderWeeklyTable[R any](
	heading string,
	rows []R,
	heads []string,
	cells func(R) (week time.Time, texts []string),
) string {
	if len(rows) == 0 {
		return ""
	}
	t := textTable{columns: []tableColumn{{head: "WEEK FROM"}, {head: "NAMESPACE"}}}
	for _, head := range heads {
		t.columns = append(t.columns, tableColumn{head: head})
	}
	for _, r := range rows {
		week, texts := cells(r)
		t.rows = append(t.rows, tableRow{cells: append([]string{week.Format(time.DateOnly)}, texts...)})
	}
	table, _ := t.render(0, false)
	return "\n" + heading + "\n" + table
}
