package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// Acknowledge is Acknowledge of a store.Acknowledger. Where the server knows its callers, the author is the caller.
func (c *Client) Acknowledge(ctx context.Context, a trail.Acknowledgement) (trail.Acknowledgement, error) {
	body, err := json.Marshal(api.NewAcknowledgementBody(a))
	if err != nil {
		return a, fmt.Errorf("write acknowledgement: %w", err)
	}
	return c.write(ctx, http.MethodPost, &url.URL{Path: api.AcknowledgementsPath}, body)
}

// Withdraw is Withdraw of a store.Acknowledger.
func (c *Client) Withdraw(ctx context.Context, id trail.FactID, by string) (trail.Acknowledgement, error) {
	return c.write(ctx, http.MethodDelete, api.WithdrawURL(id, by), nil)
}

// write sends what changes an acknowledgement, and returns that.
func (c *Client) write(ctx context.Context, method string, at *url.URL, body []byte) (a trail.Acknowledgement, err error) {
	answer, _, err := c.sendRequest(ctx, method, at, "application/json", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	err = c.parseJSON(answer, &a)
	return a, err
}
