package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The colours mean the same on every dashboard.
const (
	colourDescheduler = "#A352CC" // purple: the descheduler did it
	colourDrain       = "#3274D9" // blue: a drain did it
	colourUser        = "#8E8E8E" // grey: a person did it
	colourKubeVirt    = "#00A8A8" // teal: KubeVirt did it, for an update
	colourOther       = "#B5651D" // brown: another program did it
	colourController  = "#C58940" // tan: a controller did it, that is no part of KubeVirt
	colourUnknown     = "#C9C9C9"

	colourGood    = "#56A64B" // green: it succeeded, it is as it should be
	colourBad     = "#E02F44" // red: it failed
	colourBlocked = "#F2A900" // amber: something is in the way
	colourCooling = "#8AB8FF" // light blue: left alone on purpose
	colourCalm    = "#4F5B66" // dark grey: nothing goes on
)

// The causes of moves: what queries and the variable cause call the triggers of migrations.
const (
	causeDescheduler = "descheduler"
	causeDrain       = "drain"
	causeUser        = "user"
	causeKubeVirt    = "KubeVirt update"
	causeOther       = "single eviction"
	causeController  = "controller"
	causeUnknown     = "unknown"
)

// paint is a colour for a value, or for texts that match an expression.
type paint struct{ of, colour string }

func causePaints() []paint {
	return []paint{
		{causeDescheduler, colourDescheduler}, {causeDrain, colourDrain}, {causeUser, colourUser},
		{causeKubeVirt, colourKubeVirt}, {causeOther, colourOther}, {causeController, colourController}, {causeUnknown, colourUnknown},
	}
}

func resultPaints() []paint {
	return []paint{{"succeeded", colourGood}, {"failed", colourBad}, {"aborted", colourBlocked}}
}

// asSeries colours series by their names.
func asSeries(paints []paint) []cog.Builder[dashboard.DashboardFieldConfigSourceOverrides] {
	var out []cog.Builder[dashboard.DashboardFieldConfigSourceOverrides]
	for _, p := range paints {
		out = append(out, dashboard.NewDashboardFieldConfigSourceOverridesBuilder().
			Matcher(dashboard.MatcherConfig{Id: "byName", Options: p.of}).
			Properties([]dashboard.DynamicConfigValue{{Id: "color", Value: dashboard.FieldColor{
				Mode: dashboard.FieldColorModeIdFixed, FixedColor: cog.ToPtr(p.colour),
			}}}))
	}
	return out
}

// asText colours texts that match regular expressions; the first that matches counts. The text stays as it is.
func asText(paints ...paint) []dashboard.ValueMapping {
	var out []dashboard.ValueMapping
	for i, p := range paints {
		out = append(out, dashboard.ValueMapping{RegexMap: &dashboard.RegexMap{
			Type: dashboard.MappingTypeRegexToText,
			Options: dashboard.DashboardRegexMapOptions{
				Pattern: "/" + p.of + "/", Result: dashboard.ValueMappingResult{Color: cog.ToPtr(p.colour), Index: cog.ToPtr(int32(i))},
			},
		}})
	}
	return out
}

// nodePaints assigns each node one of twelve colours by the last character of its name, since Grafana cannot colour texts that
// nobody listed. A node has the same colour everywhere, neighbours in number have different ones.
func nodePaints() []paint {
	return []paint{
		{"[0ak]$", "#5794F2"}, {"[1blv]$", "#FF9830"}, {"[2cmw]$", "#73BF69"}, {"[3dnx]$", "#B877D9"}, {"[4eoy]$", "#FADE2A"},
		{"[5fpz]$", "#6ED0E0"}, {"[6gq]$", "#EF843C"}, {"[7hr]$", "#BA43A9"}, {"[8is]$", "#7EB26D"}, {"[9jt]$", "#EAB839"},
		{"u$", "#705DA0"}, {".$", colourUnknown},
	}
}

// step is a threshold: from the value on, the colour holds.
type step struct {
	from   float64
	colour string
}

// newThresholds starts with the colour of what is below the first step.
func newThresholds(below string, steps ...step) *dashboard.ThresholdsConfigBuilder {
	all := []dashboard.Threshold{{Color: below}}
	for _, s := range steps {
		all = append(all, dashboard.Threshold{Value: cog.ToPtr(s.from), Color: s.colour})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(all)
}
