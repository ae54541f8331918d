package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// TestObjectiveIsMissedWhenItsTimeIsOver looks at an open evacuation as time goes by, and then states another objective.
func TestObjectiveIsMissedWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	tr := tracker.New("c1")
	var facts []trail.Fact
	vmi := func(version, mark string, at time.Time) tracker.VMIObservation {
		return tracker.VMIObservation{
			Meta: tracker.Meta{UID: "u", Namespace: "shop", Name: "db", ResourceVersion: version, CreatedAt: start}, Seen: tracker.Seen{At: at}, Node: "n1", Phase: "Running",
			Mark: mark, Strategy: "LiveMigrate",
		}
	}
	facts = append(facts, tr.Observe(vmi("1", "", start))...)
	facts = append(facts, tr.Observe(vmi("2", "n1", start.Add(time.Minute)))...)
	thresholds := trail.DefaultThresholds()
	thresholds.Objectives = trail.Objectives{string(trail.AnyRequester): 10 * time.Minute}
	sink := s.For("c1", "r1")
	require.NoError(t, sink.Lead(t.Context(), "this", thresholds))
	_, err := s.Append(t.Context(), "c1", facts)
	require.NoError(t, err)
	listed := func() (objective string, met *bool) {
		page, err := s.ListJSON(t.Context(), trail.ViewEvacuations, trail.Query{})
		require.NoError(t, err)
		require.Len(t, page.Rows, 1)
		var row struct {
			Objective    *string `json:"objective"`
			ObjectiveMet *bool   `json:"objective_met"`
		}
		require.NoError(t, json.Unmarshal(page.Rows[0], &row))
		if row.Objective != nil {
			objective = *row.Objective
		}
		return objective, row.ObjectiveMet
	}
	objective, met := listed()
	require.Equal(t, "00:10:00", objective)
	require.Nil(t, met)
	due := start.Add(11 * time.Minute)
	_, err = sink.CatchUpTo(t.Context(), start.Add(5*time.Minute)) // no attempt for so long has an outlook
	require.NoError(t, err)
	news, err := sink.CatchUpTo(t.Context(), due.Add(-time.Second))
	require.NoError(t, err)
	require.Empty(t, news.Evacuations)
	news, err = sink.CatchUpTo(t.Context(), due)
	require.NoError(t, err)
	require.Len(t, news.Evacuations, 1)
	require.False(t, news.Evacuations[0].Judged, "that is new")
	require.Equal(t, due, news.Evacuations[0].Row.JudgedAt())
	_, met = listed()
	require.Equal(t, new(false), met)
	h, err := s.History(t.Context(), "c1", trail.VMISubject("shop", "db"), due)
	require.NoError(t, err)
	require.Contains(t, h.Why("shop", "db").Paragraph, "It was to leave within 10m, by 2026-11-21 00:11:00Z.")

	_, err = sink.Append(t.Context(), tr.Observe(vmi("3", "", due.Add(time.Minute))))
	require.NoError(t, err)
	_, news, err = sink.CatchUp(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, news.Evacuations, 1)
	require.True(t, news.Evacuations[0].Judged, "that was counted")
	require.Equal(t, trail.OutcomeCancelled, news.Evacuations[0].Row.Outcome)

	thresholds.Objectives = trail.Objectives{string(trail.AnyRequester): time.Hour}
	require.NoError(t, s.Judge(t.Context(), "c1", thresholds))
	inForce, err := s.Thresholds(t.Context(), "c1")
	require.NoError(t, err)
	require.Equal(t, thresholds, inForce)
	_, err = s.DeriveStale(t.Context(), "c1", nil)
	require.NoError(t, err)
	objective, met = listed()
	require.Equal(t, "01:00:00", objective)
	require.Nil(t, met, "it was cancelled in time")
}
