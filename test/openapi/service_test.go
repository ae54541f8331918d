package openapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/answers"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/trail"
)

const root = "../.."

func TestMain(m *testing.M) { storetest.Main(m) }

// recordings are those that give every view rows, and a name in several clusters.
var recordings = []string{"b-dual-retry-loop-v1.8", "c-node-drain", "d-external-strategy", "e-user-migrations", "g-churn-cooldown", "k-blocked-slot"}

// playRecordings returns the URL of a database with recordings, played by the built binary.
func playRecordings(t *testing.T) string {
	t.Helper()
	url := storetest.NewURL(t)
	binary, err := build.Evictrail()
	require.NoError(t, err)
	for _, name := range recordings {
		out, err := exec.CommandContext(t.Context(), binary, "play", filepath.Join(root, "testdata/recordings", name), "--database-url", url).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return url
}

// service is a server with the document that it serves.
type service struct {
	url       string
	model     *v3.Document
	validator validator.Validator
}

// startService serves a store and reads the document from the server.
func startService(t *testing.T, s *store.Store) service {
	t.Helper()
	over := make(chan struct{})
	close(over) // a stream that would not end could not be read
	reader := answers.Reader{Reader: s.Reader}
	server := httptest.NewServer(api.Server{Readers: api.ForAll(reader), Stream: api.StreamForAll(s, over), Health: &api.Health{
		Status: func(context.Context) trail.RecorderStatus {
			return trail.RecorderStatus{State: trail.RecorderRecording}
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = fmt.Fprintln(w, "evictrail_build_info 1")
		}),
	}}.Handler())
	t.Cleanup(server.Close)
	answer, err := http.Get(server.URL + documentPath)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "application/yaml", answer.Header.Get("Content-Type"))
	document, err := libopenapi.NewDocument(text)
	require.NoError(t, err)
	model, err := document.BuildV3Model()
	require.NoError(t, err)
	v, errs := validator.NewValidator(document, config.WithFormatAssertions(), config.WithStandardBodyDecoders(), config.WithRejectUnsupportedBodyContent(),
		config.WithStrictMode(), config.WithStrictIgnoredHeadersExtra("X-Content-Type-Options", "Content-Security-Policy", "Allow", "Retry-After"),
		config.WithStrictIgnorePaths("$.body[*].detail.**", "$.body[*].inputs.**", "$.body[*].counts.**", "$.body[*].evidence.**", "$.body[*].evidence[*].**",
			"$.body.policies[*].loops_avoided.**", "$.body.rules[*].firings[*].labels.**"))
	require.Empty(t, errs)
	valid, problems := v.ValidateDocument()
	require.True(t, valid, "%v", problems)
	return service{server.URL, &model.Model, v}
}

// openStore opens a database until the test ends.
func openStore(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, "")
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// received is an answer that the document describes.
type received struct {
	status int
	header http.Header
	body   string
}

// getValidated sends a GET, validates what is sent and what comes, and returns the latter.
func (s service) getValidated(t *testing.T, target string, header ...string) received {
	t.Helper()
	r := s.newRequest(t, http.MethodGet, target, header...)
	valid, problems := s.validator.ValidateHttpRequest(s.newRequest(t, http.MethodGet, target, header...))
	require.True(t, valid, "%s: %v", target, problems)
	return s.sendAndValidate(t, r, r)
}

// sendInvalid is ask for a request that the document does not allow: only the answer is validated.
func (s service) sendInvalid(t *testing.T, method, target string, header ...string) received {
	t.Helper()
	return s.sendAndValidate(t, s.newRequest(t, method, target, header...), s.newRequest(t, http.MethodGet, target, header...))
}

func (s service) newRequest(t *testing.T, method, target string, header ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+target, http.NoBody)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// sendAndValidate sends a request and validates the answer as one to the request that is described.
func (s service) sendAndValidate(t *testing.T, sent, described *http.Request) received {
	t.Helper()
	answer, err := http.DefaultClient.Do(sent)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	if len(body) == 0 {
		answer.Body = nil
	} else {
		answer.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	valid, problems := s.validator.ValidateHttpResponse(described, answer)
	for _, p := range problems {
		t.Logf("%s %s: %s: %s: %v", sent.Method, sent.URL, p.Message, p.Reason, p.SchemaValidationErrors)
	}
	require.True(t, valid, "%s %s: %d %.1000s", sent.Method, sent.URL, answer.StatusCode, body)
	return received{answer.StatusCode, answer.Header, string(body)}
}
