package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail/whatif"
)

// WhatIf is Store.WhatIf. Its progress is not reported.
func (c *Client) WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error) {
	var a whatif.Answer
	question, err := json.Marshal(api.NewWhatIfBody(q))
	if err != nil {
		return a, fmt.Errorf("write question: %w", err)
	}
	body, _, err := c.sendRequest(ctx, http.MethodPost, &url.URL{Path: api.WhatIfPath}, "application/json", bytes.NewReader(question))
	if err != nil {
		return a, err
	}
	err = c.parseJSON(body, &a)
	return a, err
}

// Backtest implements api.Reader. Its progress is not reported.
func (c *Client) Backtest(ctx context.Context, q backtest.Question) (backtest.Answer, error) {
	return getJSON[backtest.Answer](ctx, c, api.BacktestURL(q))
}
