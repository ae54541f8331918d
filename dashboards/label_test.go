package dashboards

import (
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/require"
)

// TestLabelsInQueries holds that an expression reads as its label, with quotes doubled, and stays what it is where value and label are the same.
func TestLabelsInQueries(t *testing.T) {
	t.Parallel()
	require.Equal(t, "CASE layer WHEN 'descheduler_cooldown' THEN 'descheduler''s cooldown' WHEN 'kubevirt_backoff' THEN 'KubeVirt''s backoff' ELSE layer END",
		labelSQL("layer", "cooldowns_now.layer"))
	require.PanicsWithValue(t, "no labels of column loops.summary", func() { labelSQL("summary", "loops.summary") })
}

// TestLabelsInTables holds that a cell has the label of its value, and the colour of the first paint that matches the value.
func TestLabelsInTables(t *testing.T) {
	t.Parallel()
	properties := labelTexts("loops.kind", loopPaints()...)
	texts := properties[0].Value.([]dashboard.ValueMapping)[0].ValueMap.Options
	require.Len(t, texts, 11)
	require.Equal(t, "blocked descheduler", *texts["budget_pinned"].Text)
	require.Equal(t, colourBlocked, *texts["budget_pinned"].Color)
	require.Equal(t, colourBad, *texts["dual_retry"].Color)
	require.Equal(t, "custom.cellOptions", properties[1].Id)
	plain := labelTexts("loops.path")
	require.Len(t, plain, 1)
	require.Nil(t, plain[0].Value.([]dashboard.ValueMapping)[0].ValueMap.Options["gate_off"].Color)
}

// TestLabelsOfSeries holds that a series goes by the label of the value that it bears, and that one whose label is its value is left alone.
func TestLabelsOfSeries(t *testing.T) {
	t.Parallel()
	names := map[any]any{}
	for _, b := range labelSeries("migrations.benefit") {
		built, err := b.Build()
		require.NoError(t, err)
		require.Equal(t, "byName", built.Matcher.Id)
		require.Equal(t, "displayName", built.Properties[0].Id)
		names[built.Matcher.Options] = built.Properties[0].Value
	}
	require.Equal(t, map[any]any{"no_effect": "no effect"}, names)
}
