package storetest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/trail"
)

// CompareAnswers compares what the store says of each VM and node as of a time with what all facts say that had happened by then. It
// returns how many answers spoke of loops, obstacles by others, or drains.
func CompareAnswers(t *testing.T, s *store.Store, facts []trail.Fact, at time.Time) int {
	t.Helper()
	return CompareAnswersBy(t, s, facts, at, trail.DefaultThresholds(), time.Time{})
}

// CompareAnswersBy is CompareAnswers by other thresholds, and without annotations that were over before a time.
func CompareAnswersBy(t *testing.T, s *store.Store, facts []trail.Fact, at time.Time, thresholds trail.Thresholds, since time.Time) int {
	t.Helper()
	all := trail.DeriveAll(slices.DeleteFunc(slices.Clone(facts), func(f trail.Fact) bool { return f.OccurredAt.After(at) }), thresholds, at)
	all.Seen = trail.Coverage{Audit: true}
	compared := 0
	for _, of := range slices.SortedFunc(maps.Keys(all.Rows), func(a, b trail.Subject) int { return strings.Compare(a.String(), b.String()) }) {
		if of.Kind != trail.SubjectVMI && of.Kind != trail.SubjectNode {
			continue
		}
		h, err := s.History(t.Context(), "c1", of, at)
		require.NoError(t, err)
		h.Seen = all.Seen
		var want, got []any
		for _, c := range []*trail.Cluster{all, h} {
			want = got
			if namespace, vmi := of.VM(); of.Kind == trail.SubjectVMI {
				got = []any{c.Why(namespace, vmi), c.WhyNot(namespace, vmi)}
			} else {
				got = []any{c.WhyNotNode(of.Name), slices.DeleteFunc(normalizeTimes(c.Annotated(of.Name)), func(a trail.Stretch) bool { return !a.To.IsZero() && a.To.Before(since) })}
			}
		}
		require.Equal(t, formatAnswers(want), formatAnswers(got), "%s as of %s", of, at)
		if text := fmt.Sprint(got...); strings.Contains(text, ", open since ") || strings.Contains(text, "drain") {
			compared++
		}
	}
	return compared
}

// ofRepeats matches until when the line of a repeated request was open: one that was read does not know it, and nothing shows it.
var ofRepeats = regexp.MustCompile(` repeatedAt:[^}]*`)

// formatAnswers returns what answers hold.
func formatAnswers(answers []any) string {
	return ofRepeats.ReplaceAllString(fmt.Sprintf("%+v", answers), "")
}

// normalizeTimes drops the locations of times, which may be written in several ways.
func normalizeTimes(all []trail.Stretch) []trail.Stretch {
	for i := range all {
		all[i].From, all[i].To = all[i].From.UTC(), all[i].To.UTC()
	}
	return all
}
