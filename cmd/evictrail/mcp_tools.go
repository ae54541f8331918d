package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// assistant answers what a program asks that talks to people.
type assistant struct {
	ask    func(context.Context, func(context.Context, api.Reader) error) error // has an answer made by one reader, or once more by another
	reader api.Reader                                                           // of one answer
	site   string                                                               // address below which the pages are; empty: it is not known
	log    *slog.Logger
}

// assistantTool is a question that an assistant can ask: a command of evictrail, with the parameters of the API.
type assistantTool struct {
	name, about string
	schema      json.RawMessage
	answer      func(ctx context.Context, a assistant, arguments json.RawMessage) (toolAnswer, error)
}

// listTools returns the tools, in the order in which a person would ask.
var listTools = sync.OnceValue(func() []assistantTool {
	tools := []assistantTool{
		newTool(
			newTop(),
			"What is wrong now: open loops, stuck evacuations (whose attempts fail) and drains, the worst first.",
			api.OpenArguments(sortOrders...).Schema(),
			assistant.answerTop,
		),
		newTool(
			newWhy(),
			"Why a VM moved, is to move or was shut down, or why VMs left a node: who asked and in which words, "+
				"what was tried, why that failed, whether it was needed, "+
				"what to do, and the facts that this rests on.",
			api.WhyArguments(false).Schema(),
			assistant.answerWhy,
		),
		newTool(
			newWhyNot(),
			"What keeps a VM, or the VMs of a node, from moving: "+
				"failing migrations and backoff, slots, cooldowns, drains, or how the VM is configured.",
			api.WhyArguments(true).Schema(),
			assistant.answerWhyNot,
		),
		newTool(
			newDrainPreview(),
			"What a drain of a node would do to each of its VMs, and how long it would take; while a drain goes on, how much longer. "+
				"Nothing is drained.",
			api.ForecastArguments().Schema(),
			assistant.answerForecast,
		),
		newTool(
			newLimits(),
			"Whether KubeVirt's limits on parallel migrations fit what was asked of them in the last week, and which to raise.",
			api.LimitsArguments().Schema(),
			assistant.answerLimits,
		),
		newTool(
			newWeekly(),
			"What happened week by week, by namespace: downtimes, objectives of evacuations and what is left of their error budget, cost of migrations.",
			api.WeeklyArguments().Schema(),
			assistant.answerWeekly,
		),
		newTool(
			newSearch(),
			"Find VMs, nodes and migrations by a part of their names, where a name or its namespace is not known.",
			api.SearchArguments().Schema(),
			assistant.answerSearch,
		),
		newTool(
			newClusters(),
			"Which clusters are recorded, what is open in each, the worst first, and whether each is recorded as it should be.",
			api.OpenArguments().Schema(),
			assistant.answerClusters,
		),
		newTool(
			newCompare(),
			"How clusters fared over days, to compare them: failures, needless moves, missed objectives, loops, versions of KubeVirt.",
			api.CompareArguments().Schema(),
			assistant.answerComparison,
		),
	}
	for _, l := range []list{loopsList, evacuationsList, migrationsList, requestsList, drainsList, cooldownsList, gapsList, timelineList} {
		tools = append(tools, newListTool(l))
		if l.other != nil && l.other.view.Name != trail.ViewHolds.Name { // what holds a VM now is in why-not
			tools = append(tools, newListTool(list{view: l.other.view}))
		}
	}
	return append(
		tools,
		newTool(
			newSettings(),
			"The settings of KubeVirt and of the descheduler that are or were in force, "+
				"or those behind a fingerprint of an answer.",
			api.SettingsArguments().Schema(),
			assistant.answerSettings,
		),
		newTool(
			newWhatIf(),
			"What would have been different under other policies: "+
				"replays what was recorded, which takes up to half a minute.",
			api.WhatIfSchema(),
			assistant.answerWhatIf,
		),
		newTool(
			newAdvise(),
			"Recommend settings of KubeVirt and of the descheduler from the last weeks, and check the same advice in the weeks before: "+
				"replays each week, which can take minutes.",
			api.AdviceArguments().Schema(),
			assistant.answerAdvice,
		),
		newTool(
			newAlertsBacktest(),
			"How often evictrail's alerts would have fired in a recorded period, with their thresholds and with others, "+
				"and beside how many of these firings something wrong was recorded. "+
				"Ask about one alert where you can: all take up to half a minute.",
			api.BacktestArguments().Schema(),
			assistant.answerBacktest,
		),
	)
})

// newTool returns a tool that is named as a command is.
func newTool(
	cmd *cobra.Command,
	about string,
	schema json.RawMessage,
	answer func(assistant, context.Context, json.RawMessage) (toolAnswer, error),
) assistantTool {
	return assistantTool{
		cmd.Name(),
		about,
		schema,
		func(ctx context.Context, a assistant, arguments json.RawMessage) (toolAnswer, error) {
			return answer(a, ctx, arguments)
		},
	}
}

// newListTool returns a tool that lists the rows of a view.
func newListTool(l list) assistantTool {
	name, about := strings.ReplaceAll(l.view.Noun, "/", "-"), "List "+l.view.About+"."
	return assistantTool{
		name,
		about,
		api.ListArguments(l.view).Schema(),
		func(ctx context.Context, a assistant, arguments json.RawMessage) (toolAnswer, error) {
			return a.answerList(ctx, l, arguments)
		},
	}
}

// explainError says what an assistant can do about an error of a question about a cluster.
func (a assistant) explainError(ctx context.Context, cluster string, err error) error {
	var ambiguous *trail.AmbiguousError
	if errors.As(err, &ambiguous) {
		return fmt.Errorf(
			"%s is known in several clusters: choose one with the argument cluster: %s",
			ambiguous.Name,
			strings.Join(ambiguous.Clusters, ", "),
		)
	}
	var unknown *unknownClusterError
	if err = inCluster(ctx, a.reader, cluster, err); errors.Is(err, trail.ErrNotFound) && !errors.As(err, &unknown) {
		return fmt.Errorf("%w; the tool search finds what there is by a part of its name", err)
	}
	return err
}

func (a assistant) answerWhy(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	q, err := api.ReadWhy(false, arguments, nowUTC())
	if err != nil {
		return toolAnswer{}, err
	}
	found, err := a.reader.Why(ctx, q.Question)
	if err != nil {
		return toolAnswer{}, a.explainError(ctx, q.Cluster, err)
	}
	all := found.Evidence
	out, shown, err := fitAnswer(min(q.Evidence, len(all)), func(lines int) (toolAnswer, error) {
		var b bytes.Buffer
		if err := writeAnswer(&b, found, answerForm{q.Verbose, lines}); err != nil {
			return toolAnswer{}, err
		}
		short := found
		short.Evidence = all[len(all)-lines:]
		return newToolAnswer(b.String(), short)
	})
	out.addCutNote(
		shown,
		len(all),
		"facts of the evidence, the oldest",
		"The argument evidence asks for more, pages have all.",
	)
	out.addPage("Page", web.PageOf(q.Cluster, q.Of, q.At))
	if shown > 0 {
		out.addPage(
			"Raw facts of the evidence",
			web.FactsPage(q.Cluster, q.Of, all[len(all)-shown].At, all[len(all)-1].At),
		)
	}
	return out, err
}

func (a assistant) answerWhyNot(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	q, err := api.ReadWhy(true, arguments, nowUTC())
	if err != nil {
		return toolAnswer{}, err
	}
	found, err := a.reader.WhyNot(ctx, q.Question)
	if err != nil {
		return toolAnswer{}, a.explainError(ctx, q.Cluster, err)
	}
	all := found.Obstacles
	out, shown, err := fitAnswer(len(all), func(obstacles int) (toolAnswer, error) {
		short := found
		short.Obstacles = all[:obstacles]
		var b bytes.Buffer
		if err := writeNotAnswer(&b, short); err != nil {
			return toolAnswer{}, err
		}
		return newToolAnswer(b.String(), short)
	})
	out.addCutNote(shown, len(all), "obstacles", "Ask about a single VM.")
	out.addPage("Page", web.PageOf(q.Cluster, q.Of, q.At))
	return out, err
}

func (a assistant) answerForecast(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q trail.Question
	if err := api.ForecastArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	found, err := a.reader.DrainForecast(ctx, q)
	if err != nil {
		return toolAnswer{}, a.explainError(ctx, q.Cluster, err)
	}
	all := found.Guests
	out, shown, err := fitAnswer(len(all), func(guests int) (toolAnswer, error) {
		short := found
		short.Guests = all[:guests]
		var b bytes.Buffer
		if err := writeForecast(&b, short); err != nil {
			return toolAnswer{}, err
		}
		return newToolAnswer(b.String(), short)
	})
	out.addCutNote(shown, len(all), "VMs", "Those that decide come first.")
	out.addPage("Page", web.PageOf(q.Cluster, q.Of, q.At))
	return out, err
}

func (a assistant) answerLimits(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q trail.Question
	if err := api.LimitsArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	all, err := loadLimits(ctx, a.reader, q.Cluster)
	if err != nil {
		return toolAnswer{}, err
	}
	out, shown, err := fitAnswer(len(all), func(first int) (toolAnswer, error) {
		return newToolAnswer(renderLimits(all[:first]), all[:first])
	})
	out.addCutNote(shown, len(all), "clusters", "Ask about one with the argument cluster.")
	out.addPage("Page", web.LimitsPage(q.Cluster))
	return out, err
}

func (a assistant) answerWeekly(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q trail.WeeklyQuery
	if err := api.WeeklyArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	if err := q.Bound(); err != nil {
		return toolAnswer{}, err
	}
	all, err := loadWeekly(ctx, a.reader, q)
	if err != nil {
		return toolAnswer{}, err
	}
	out, shown, err := fitAnswer(len(all), func(first int) (toolAnswer, error) {
		return newToolAnswer(renderWeekly(all[:first]), all[:first])
	})
	out.addCutNote(shown, len(all), "clusters", "Ask about one with the argument cluster.")
	out.addPage("Page", web.WeeklyPage(q.Cluster))
	return out, err
}

func (a assistant) answerTop(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	q := api.OpenQuery{Sort: sortSeverity}
	if err := api.OpenArguments(sortOrders...).Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	found, err := loadIncidents(ctx, a.reader, q.Cluster, nowUTC())
	if err == nil && len(found.all) == 0 {
		err = checkCluster(ctx, a.reader, q.Cluster)
	}
	if err != nil {
		return toolAnswer{}, err
	}
	sortIncidents(found.all, q.Sort)
	out, shown, err := fitAnswer(len(found.all), func(first int) (toolAnswer, error) {
		return newToolAnswer(found.render(first, terminal{}), describeIncidents(found.all[:first]))
	})
	out.notes = append(out.notes, found.listNotices()...)
	out.addCutNote(
		shown,
		len(found.all),
		"problems, the last in this order",
		"Ask about one cluster, or in another order.",
	)
	out.addPage("Page", web.FrontPage(q.Cluster))
	return out, err
}

// incidentRow is an incident for programs.
type incidentRow struct {
	Cluster        string    `json:"cluster"`
	Problem        string    `json:"problem"`
	VM             string    `json:"vm,omitempty"`
	Node           string    `json:"node,omitempty"`
	Since          time.Time `json:"since"`
	FailedAttempts int       `json:"failed_attempts"`
	NextAttemptAt  time.Time `json:"next_attempt_at,omitzero"`
	AcknowledgedBy string    `json:"acknowledged_by,omitempty"`
	Summary        string    `json:"summary"`
}

func describeIncidents(all []incident) []incidentRow {
	rows := []incidentRow{}
	for _, i := range all {
		rows = append(rows, incidentRow{i.cluster, i.label, i.vm, i.node, i.since, i.failed, i.next, i.ackedBy, i.text})
	}
	return rows
}

func (a assistant) answerSearch(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q api.SearchQuery
	if err := api.SearchArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	found, err := searchNames(ctx, a.reader, q)
	if err != nil {
		return toolAnswer{}, err
	}
	text := renderFound(found)
	if len(found.Found) == 0 {
		text = fmt.Sprintf("Nothing has %q in its name.\n", q.Text)
	}
	out, err := newToolAnswer(text, found)
	out.addPage("Page", web.SearchPage(q.Cluster, q.Text))
	return out, err
}

func (a assistant) answerClusters(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q api.OpenQuery
	if err := api.OpenArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	all, err := loadClusters(ctx, a.reader, q.Cluster)
	if err != nil {
		return toolAnswer{}, err
	}
	out, shown, err := fitAnswer(len(all), func(first int) (toolAnswer, error) {
		return newToolAnswer(renderClusters(all[:first]), all[:first])
	})
	if len(all) == 0 {
		out.text = "Nothing is recorded yet.\n"
	}
	out.addCutNote(shown, len(all), "clusters", "Ask about one with the argument cluster.")
	out.addPage("Page", web.FrontPage(q.Cluster))
	return out, err
}

func (a assistant) answerComparison(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q trail.CompareQuery
	if err := api.CompareArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	all, err := loadComparison(ctx, a.reader, q)
	if err != nil {
		return toolAnswer{}, err
	}
	out, shown, err := fitAnswer(len(all), func(first int) (toolAnswer, error) {
		return newToolAnswer(renderComparison(all[:first]), all[:first])
	})
	out.addCutNote(shown, len(all), "clusters", "Ask about one with the argument cluster.")
	return out, err
}

func (a assistant) answerSettings(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q trail.SettingsQuery
	if err := api.SettingsArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	all, err := a.reader.Settings(ctx, q)
	if err == nil && len(all) == 0 {
		err = cmp.Or(checkCluster(ctx, a.reader, q.Cluster), errNoSettings)
	}
	if err != nil {
		return toolAnswer{}, err
	}
	slices.Reverse(all) // the newest are kept
	out, shown, err := fitAnswer(len(all), func(newest int) (toolAnswer, error) {
		some := slices.Clone(all[:newest])
		slices.Reverse(some)
		var b bytes.Buffer
		if err := writeSettings(&b, some); err != nil {
			return toolAnswer{}, err
		}
		return newToolAnswer(b.String(), some)
	})
	out.addCutNote(shown, len(all), "settings, the oldest", "Ask with cluster, or with a longer fingerprint.")
	return out, err
}

func (a assistant) answerAdvice(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	var q whatif.AdviceQuestion
	if err := api.AdviceArguments().Read(arguments, nowUTC(), &q); err != nil {
		return toolAnswer{}, err
	}
	if err := q.Bound(); err != nil {
		return toolAnswer{}, err
	}
	found, err := api.Advise(ctx, a.reader, q)
	if err != nil {
		return toolAnswer{}, a.explainError(ctx, q.Cluster, err)
	}
	out, err := newToolAnswer(renderAdvice(&found), found)
	out.addPage("Page", web.AdvicePage(found.Cluster))
	return out, err
}

func (a assistant) answerWhatIf(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	q, err := api.ReadWhatIf(bytes.NewReader(arguments), nowUTC())
	if err != nil {
		return toolAnswer{}, err
	}
	found, err := a.reader.WhatIf(ctx, q)
	if err != nil {
		return toolAnswer{}, a.explainError(ctx, q.Cluster, err)
	}
	var b bytes.Buffer
	if err := writeWhatIf(&b, &found); err != nil {
		return toolAnswer{}, err
	}
	most := 0
	for i := range found.Policies {
		most = max(most, len(found.Policies[i].Changes))
	}
	out, shown, err := fitAnswer(most, func(changes int) (toolAnswer, error) {
		short := found
		short.Policies = slices.Clone(found.Policies)
		for i := range short.Policies {
			cutChanges(&short.Policies[i], changes)
		}
		return newToolAnswer(b.String(), short)
	})
	out.addCutNote(
		shown,
		most,
		"changes of a policy in the structured answer",
		"Ask about one policy, a VM's namespace or a shorter time.",
	)
	out.addPage("Page", web.WhatIfPage(q.Cluster))
	return out, err
}

// cutChanges leaves out all but the first changes of a result; changes_more counts the others.
func cutChanges(r *whatif.Result, most int) {
	if cut := len(r.Changes) - most; cut > 0 {
		r.Changes, r.ChangesMore = r.Changes[:most], r.ChangesMore+cut
	}
}
