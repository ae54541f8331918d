package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/evictrail/evictrail/remote"
)

// sendWithin is how long one request may take.
const sendWithin = 10 * time.Second

// answerMost bounds what is read of an answer, in bytes.
const answerMost = 64 << 10

// poster sends bodies to one server. It is not safe for concurrent use.
type poster struct {
	server remote.Server
	client *remote.Client
}

// newPoster makes a poster. Its errors are of the files that the server names.
func newPoster(server remote.Server) (*poster, error) {
	client, err := remote.NewClient(server, sendWithin)
	return &poster{server, client}, err
}

// post sends a body and returns the answer, of which the status is 2xx. An answer that blames the body alone is a RefusedError.
func (p *poster) post(ctx context.Context, contentType string, body []byte) ([]byte, error) {
	client, _, err := p.client.Current()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.server.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	answer, err := client.Do(request)
	if of, is := errors.AsType[*url.Error](err); is { // it names the URL, in which there may be a secret
		err = of.Err
	}
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", p.server, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerMost))
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return text, err
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return nil, &RefusedError{p.explainAnswer(answer.Status, text)}
	}
	return nil, p.explainAnswer(answer.Status, text)
}

// wordsMost bounds how much of an answer an error quotes, in bytes.
const wordsMost = 200

func (p *poster) explainAnswer(status string, text []byte) error {
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), wordsMost)]), "")), " ")
	if words != "" {
		words = ": " + words
	}
	return fmt.Errorf("%s answers %s%s", p.server, status, words)
}
