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
	return getJSON[trail.Answer](ctx, c, api.QuestionURL(q, false))
}

// WhyNot is Store.WhyNot.
func (c *Client) WhyNot(ctx context.Context, q trail.Question) (trail.NotAnswer, error) {
	return getJSON[trail.NotAnswer](ctx, c, api.QuestionURL(q, true))
}

// Names is Store.Names.
func (c *Client) Names(ctx context.Context, q trail.NameQuery) ([]string, error) {
	return getJSON[[]string](ctx, c, api.NamesURL(q))
}

// Nodes implements api.Reader.
func (c *Client) Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error) {
	return getJSON[[]trail.NodeSummary](ctx, c, api.NodesURL(q))
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
	return getJSON[[]trail.FleetLine](ctx, c, api.ClustersURL(worst))
}

// Compare implements api.Reader.
func (c *Client) Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error) {
	return getJSON[[]trail.ClusterComparison](ctx, c, api.ComparisonURL(q))
}

// DrainForecast implements api.Reader.
func (c *Client) DrainForecast(ctx context.Context, q trail.Question) (forecast.Drain, error) {
	return getJSON[forecast.Drain](ctx, c, api.DrainForecastURL(q))
}

// Limits implements api.Reader.
func (c *Client) Limits(ctx context.Context, cluster string) ([]forecast.Limits, error) {
	return getJSON[[]forecast.Limits](ctx, c, api.LimitsURL(cluster))
}

// Weekly implements api.Reader.
func (c *Client) Weekly(ctx context.Context, q trail.WeeklyQuery) ([]trail.Weekly, error) {
	return getJSON[[]trail.Weekly](ctx, c, api.WeeklyURL(q))
}

// Recorders implements api.Reader.
func (c *Client) Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error) {
	return getJSON[[]trail.RecorderStatus](ctx, c, api.RecordersURL(cluster, from, to))
}

// Settings implements api.Reader.
func (c *Client) Settings(ctx context.Context, q trail.SettingsQuery) ([]trail.SettingsInForce, error) {
	return getJSON[[]trail.SettingsInForce](ctx, c, api.SettingsURL(q))
}

// Find implements api.Reader.
func (c *Client) Find(ctx context.Context, cluster, text string) ([]trail.Found, int, error) {
	a, err := getJSON[api.SearchAnswer](ctx, c, api.SearchURL(api.SearchQuery{Cluster: cluster, Text: text}))
	return a.Found, a.Total, err
}
