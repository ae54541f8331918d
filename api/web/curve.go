package web

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/evictrail/evictrail/trail/whatif"
)

// curves is the trade-off of a sweep: what is saved, and how long evictions wait, over the setting. Each has an axis of its own.
type curves struct {
	Of     string
	Charts []curve
	Ticks  []tick // of the setting
	Now    *nowLine
	Note   string // where the setting stands now, if it is not within the sweep
}

// nowLine is where the setting stands today.
type nowLine struct{ X, Text string }

// curve is one chart of a sweep. Places are per cent of the plot.
type curve struct {
	Title, Class string
	Points       string // of a polyline, in a plot of 100 by 100
	Dots         []dot
	Axis         []gridLine
}

type dot struct{ X, Y, Title string }

// gridLine is a line of the vertical axis.
type gridLine struct{ Y, Text string }

// The inner edges of a plot, per cent: dots at its edges are drawn whole.
const (
	curveLeft, curveWidth = 4, 92
	curveTop, curveSize   = 8, 84
)

// curvesOf draws a sweep of two points at least; of fewer there is none. Points have the same distance: steps are round, and not equal.
func curvesOf(a *whatif.Answer, swept []whatif.Result) curves {
	c := curves{Of: a.SweepOf}
	if len(swept) < 2 {
		return c
	}
	c.Charts = []curve{
		curveOf("Migrations saved", "saved", swept, stepOfCounts, func(r *whatif.Result) (float64, string) {
			return float64(r.MigrationsSaved), fmt.Sprintf("%d migration%s saved", r.MigrationsSaved, pluralSuffix(r.MigrationsSaved))
		}, func(y float64) string { return strconv.Itoa(int(y)) }),
		curveOf("Mean wait of evictions held back", "wait", swept, stepOfSeconds, func(r *whatif.Result) (float64, string) {
			return r.WaitMean().Seconds(), formatSpan(r.WaitMean()) + " of waiting on average"
		}, func(y float64) string { return formatRoundSpan(time.Duration(y * float64(time.Second))) }),
	}
	every := (len(swept) + ticksWanted - 1) / ticksWanted
	for i := 0; i < len(swept); i += every {
		c.Ticks = append(c.Ticks, tick{formatPercent(curveX(float64(i), len(swept))), swept[i].SettingText(a.SweepOf)})
	}
	value, text, known := a.Rules.Setting(a.SweepOf)
	switch place, within := placeBetween(swept, value); {
	case !known:
	case within:
		c.Now = &nowLine{formatPercent(curveX(place, len(swept))), "now: " + text}
	default:
		c.Note = fmt.Sprintf("Now it is %s, which is not within the sweep.", text)
	}
	return c
}

// curveX returns the place of a point of a sweep, per cent of the width.
func curveX(i float64, n int) float64 { return curveLeft + curveWidth*i/float64(n-1) }

// placeBetween returns between which points of a sweep a value lies, counted from 0.
func placeBetween(swept []whatif.Result, value float64) (place float64, within bool) {
	i := slices.IndexFunc(swept, func(r whatif.Result) bool { return r.Value >= value })
	switch {
	case i < 0, i == 0 && swept[0].Value != value:
		return 0, false
	case swept[i].Value == value:
		return float64(i), true
	}
	before := swept[i-1].Value
	return float64(i-1) + (value-before)/(swept[i].Value-before), true
}

// curveOf draws one figure of a sweep; step returns the distance of the lines of its axis.
func curveOf(title, class string, swept []whatif.Result, step func(most float64) float64, value func(*whatif.Result) (float64, string), text func(float64) string) curve {
	c := curve{Title: title, Class: class}
	most := 0.0
	for i := range swept {
		y, _ := value(&swept[i])
		most = max(most, y)
	}
	by := step(most)
	top := max(math.Ceil(most/by), 1) * by
	place := func(y float64) float64 { return curveTop + curveSize*(1-y/top) }
	for y := 0.0; y <= top; y += by {
		c.Axis = append(c.Axis, gridLine{formatPercent(place(y)), text(y)})
	}
	for i := range swept {
		y, title := value(&swept[i])
		x := curveX(float64(i), len(swept))
		c.Points += fmt.Sprintf("%.2f,%.2f ", x, place(y))
		c.Dots = append(c.Dots, dot{formatPercent(x), formatPercent(place(y)), swept[i].Name + ": " + title})
	}
	return c
}

// axisLines is how many lines an axis has at most, that of zero not counted.
const axisLines = 4

// stepOfCounts returns a round distance of the lines of an axis of counts.
func stepOfCounts(most float64) float64 {
	for power := 1.0; ; power *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			if digit*power*axisLines >= most {
				return digit * power
			}
		}
	}
}

// stepOfSeconds returns a round distance of the lines of an axis of seconds.
func stepOfSeconds(most float64) float64 {
	for _, step := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600} {
		if step*axisLines >= most {
			return step
		}
	}
	return 86400 * stepOfCounts(most/86400)
}

// formatRoundSpan writes a round duration with one unit, or two.
func formatRoundSpan(d time.Duration) string {
	switch {
	case d >= 24*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d < time.Hour && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return formatSpan(d)
}
