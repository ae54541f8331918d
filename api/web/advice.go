package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/whatif"
)

// advicePath is the page that recommends settings.
const advicePath = "/advice"

// adviceBody is the form, and what is recommended.
type adviceBody struct {
	Fields   []listField
	Nothing  string // why there is no advice; empty: there is
	Advice   *whatif.Advice
	HowToSet *howToSet // of the policy that is recommended; nil: none is
	JSON     string    // address at which the API answers the same
}

// advicePage recommends settings from the last weeks, as the command does.
func advicePage(v *visit) error {
	v.Title = "Recommended settings"
	if v.leadToTidyAddress() {
		return nil
	}
	values := dropAppearance(v.URL.Query())
	q, err := v.site.ParseAdvice(values.Encode(), v.asked)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadQuestion, err)
	}
	known, err := v.reader.Recorders(v.Context(), q.Cluster, time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	b := adviceBody{JSON: "/api/v1/whatif/advice"}
	if len(values) > 0 {
		b.JSON += "?" + values.Encode()
	}
	a, err := q.Ask(
		known,
		func(week whatif.Question) (whatif.Answer, error) { return v.reader.WhatIf(v.Context(), week) },
	)
	switch {
	case errors.Is(err, trail.ErrNotFound) && len(known) == 1:
		v.Cluster = known[0].Cluster
		b.Nothing = "No evacuation began in these weeks, so there is nothing to learn from. Choose more of them."
	case errors.Is(err, context.DeadlineExceeded):
		b.Nothing = "Replaying that took too long. Choose fewer weeks, or ask `evictrail advise` on the command line, " +
			"which waits."
	case err != nil:
		return err
	default:
		v.Cluster, v.AsOf, b.Advice = a.Cluster, a.Until, &a
		if a.Result != nil {
			b.HowToSet = howToSetPolicy(a.Result.Policy, a.Learned.Rules)
		}
	}
	b.Fields = append(
		v.clusterField(),
		listField{
			Name:  "weeks",
			Label: "Weeks to check it in",
			Value: v.param("weeks"),
			Hint:  fmt.Sprint(whatif.UsualAdvised),
		},
		listField{
			Name:  "learn",
			Label: "Weeks it rests on",
			Value: v.param("learn"),
			Hint:  fmt.Sprint(whatif.UsualLearn),
		},
		listField{Name: "until", Label: "Until", Value: v.param("until"), Hint: "1h or a time"},
		listField{
			Name:  "policies",
			Label: "Policies, with ; between",
			Value: v.param("policies"),
			Hint:  "base=5m; node-limit=1",
		},
		listField{Name: "sweep", Label: "Sweep", Value: v.param("sweep"), Hint: "base=5m..60m"},
	)
	v.Content = b
	return v.renderPage("advice", http.StatusOK)
}
