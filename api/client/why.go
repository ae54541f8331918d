package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
)

// Why is Store.Why.
func (c *Client) Why(ctx context.Context, q trail.Question) (trail.Answer, error) {
	var a trail.Answer
	body, _, err := c.get(ctx, api.QuestionURL(q, false), "application/json")
	if err != nil {
		return a, err
	}
	err = c.parseJSON(body, &a)
	return a, err
}

// WhyNot is Store.WhyNot.
func (c *Client) WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error) {
	var a trail.NotAnswer
	body, _, err := c.get(ctx, api.QuestionURL(q, true), "application/json")
	if err != nil {
		return a, err
	}
	err = c.parseJSON(body, &a)
	return a, err
}

// Names is Store.Names.
func (c *Client) Names(ctx context.Context, q trail.NameQuery) ([]string, error) {
	var names []string
	body, _, err := c.get(ctx, api.NamesURL(q), "application/json")
	if err != nil {
		return nil, err
	}
	err = c.parseJSON(body, &names)
	return names, err
}

// Nodes implements api.Reader.
func (c *Client) Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error) {
	var nodes []trail.NodeSummary
	body, _, err := c.get(ctx, api.NodesURL(q), "application/json")
	if err != nil {
		return nil, err
	}
	err = c.parseJSON(body, &nodes)
	return nodes, err
}

// Live reports whether the evictrail lives.
func (c *Client) Live(ctx context.Context) error {
	_, _, err := c.get(ctx, &url.URL{Path: "/livez"}, "text/plain")
	return err
}

// CheckPage reports whether a page is there. Errors: trail.ErrNotFound; *api.Problem where it is refused.
func (c *Client) CheckPage(ctx context.Context, at *url.URL) error {
	answer, err := c.do(ctx, http.MethodHead, at, "text/html", http.NoBody)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	switch status := answer.StatusCode; {
	case status == http.StatusNotFound:
		return fmt.Errorf("page %s: %w", at.Path, trail.ErrNotFound)
	case status >= http.StatusBadRequest:
		return api.NewProblem(status, fmt.Sprintf("the page is answered with %d %s", status, strings.ToLower(http.StatusText(status))))
	}
	return nil
}

// Fleet implements api.Reader.
func (c *Client) Fleet(ctx context.Context, worst bool) ([]trail.FleetLine, error) {
	var lines []trail.FleetLine
	body, _, err := c.get(ctx, api.ClustersURL(worst), "application/json")
	if err != nil {
		return nil, err
	}
	err = c.parseJSON(body, &lines)
	return lines, err
}

// Compare implements api.Reader.
func (c *Client) Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error) {
	var all []trail.ClusterComparison
	body, _, err := c.get(ctx, api.ComparisonURL(q), "application/json")
	if err != nil {
		return nil, err
	}
	err = c.parseJSON(body, &all)
	return all, err
}

// DrainForecast implements api.Reader.
func (c *Client) DrainForecast(ctx context.Context, q trail.Question) (d forecast.Drain, err error) {
	body, _, err := c.get(ctx, api.DrainForecastURL(q), "application/json")
	if err != nil {
		return d, err
	}
	err = c.parseJSON(body, &d)
	return d, err
}

// Limits implements api.Reader.
func (c *Client) Limits(ctx context.Context, cluster string) (all []forecast.Limits, err error) {
	body, _, err := c.get(ctx, api.LimitsURL(cluster), "application/json")
	if err != nil {
		return nil, err
	}
	err = c.parseJSON(body, &all)
	return all, err
}

// Recorders implements api.Reader.
func (c *Client) Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error) {
	var all []trail.RecorderStatus
	body, _, err := c.get(ctx, api.RecordersURL(cluster, from, to), "application/json")
	if err != nil {
		return nil, err
	}
	err = c.parseJSON(body, &all)
	return all, err
}

// Settings implements api.Reader.
func (c *Client) Settings(ctx context.Context, q trail.SettingsQuery) ([]trail.SettingsInForce, error) {
	var all []trail.SettingsInForce
	body, _, err := c.get(ctx, api.SettingsURL(q), "application/json")
	if err != nil {
		return nil, err
	}
	err = c.parseJSON(body, &all)
	return all, err
}

// Find implements api.Reader.
func (c *Client) Find(ctx context.Context, cluster, text string) ([]trail.Found, int, error) {
	var a api.SearchAnswer
	body, _, err := c.get(ctx, api.SearchURL(api.SearchQuery{Cluster: cluster, Text: text}), "application/json")
	if err != nil {
		return nil, 0, err
	}
	err = c.parseJSON(body, &a)
	return a.Found, a.Total, err
}
