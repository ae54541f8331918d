package recorder

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
)

// getFrom returns what a path of a replica answers.
func (r *Recorder) getFrom(ctx context.Context, of *replica, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+of.address+path, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", path, answer.Status)
	}
	return string(text), err
}

// Ask runs a command of evictrail on its database and returns what it prints.
func (r *Recorder) Ask(ctx context.Context, args ...string) (string, error) {
	args = append(args, "--cluster", Cluster, "--database-url", r.DatabaseURL())
	out, err := exec.CommandContext(ctx, r.program, args...).CombinedOutput()
	return string(out), err
}
