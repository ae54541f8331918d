package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/trail"
)

// unknownClusterError says that nothing is recorded under the name of a cluster that was asked for. It is a trail.ErrNotFound.
type unknownClusterError struct {
	name  string
	known []string // the clusters that are recorded
}

func (e *unknownClusterError) Error() string {
	if len(e.known) == 0 {
		return fmt.Sprintf("no cluster named %q; nothing is recorded yet", e.name)
	}
	return fmt.Sprintf("no cluster named %q; known clusters: %s", e.name, strings.Join(e.known, ", "))
}

// Is implements the interface of errors.Is.
func (e *unknownClusterError) Is(target error) bool { return target == trail.ErrNotFound }

// checkCluster returns an unknownClusterError where a cluster was named that is not recorded. It is asked once nothing was found, so that answers cost no
// second question.
func checkCluster(ctx context.Context, s api.Reader, name string) error {
	if name == "" {
		return nil
	}
	alike, err := s.Names(ctx, trail.NameQuery{Kind: trail.NameCluster, Prefix: name})
	if err != nil || slices.Contains(alike, name) {
		return err
	}
	known, err := s.Names(ctx, trail.NameQuery{Kind: trail.NameCluster})
	if err != nil {
		return err
	}
	return &unknownClusterError{name, known}
}
