package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

func (a assistant) answerBacktest(ctx context.Context, arguments json.RawMessage) (toolAnswer, error) {
	q, err := api.ReadBacktestArguments(arguments, nowUTC())
	if err != nil {
		return toolAnswer{}, err
	}
	found, err := a.reader.Backtest(ctx, q)
	if err != nil {
		if errors.Is(err, trail.ErrNotFound) { // a search finds no history
			return toolAnswer{}, inCluster(ctx, a.reader, q.Cluster, err)
		}
		return toolAnswer{}, a.explainError(ctx, q.Cluster, err)
	}
	text := renderBacktest(&found, len(q.Rules) > 0)
	most := 0
	for _, r := range found.Rules {
		most = max(most, len(r.Firings))
	}
	out, shown, err := fitAnswer(most, func(firings int) (toolAnswer, error) {
		short := found
		short.Rules = nil
		for _, r := range found.Rules {
			rule := *r
			rule.Firings = r.Firings[:min(firings, len(r.Firings))]
			short.Rules = append(short.Rules, &rule)
		}
		return newToolAnswer(text, short)
	})
	out.addCutNote(shown, most, "firings of an alert in the structured answer", "Ask about one alert, or a shorter time.")
	out.addPage("Page", web.BacktestPage(found.Cluster))
	return out, err
}
