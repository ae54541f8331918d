package web

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// words are what templates write with.
var words = template.FuncMap{
	"clock":    formatTime,
	"rfc":      func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"input":    func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") },
	"when":     func(name, value string) timeField { return timeField{name, value} },
	"s":        pluralSuffix,
	"span":     formatSpan,
	"since":    func(at, now time.Time) string { return formatSpan(now.Sub(at)) },
	"vmHref":   vmHref,
	"nodeHref": nodeHref,
	"loopHref": loopHref,
	"advice":   parseParagraphs,
	"label":    renderLabel,
	"reason":   func(f trail.Recorded) template.HTML { return renderTitled(f.Kind.LabelReason(f.Reason)) },
	"source":   func(s string) template.HTML { return renderTitled(trail.LabelSource(s)) },
	"counted":  func(name string) template.HTML { return renderTitled(trail.LabelCount(name)) },
	"age":      func(at, now time.Time) string { return trail.Age(now.Sub(at)) },
	"upper":    trail.UpperFirst,
	"clip":     func(text string) string { return trail.ClipText(strings.TrimSpace(text), 300) },
	"percent":  formatShare,
	"over":     func(r *trail.Reading) bool { return *r.Value > *r.Threshold },
	"prose":    splitProse,
	"count":    renderCount,

	"lower":     strings.ToLower,
	"shortTime": func(t time.Time) string { return t.UTC().Format("15:04:05") },

	"recorderClass": func(s *trail.RecorderStatus) string { return recorderClass(*s) },

	"limitsHref":   LimitsPage,
	"weeklyHref":   WeeklyPage,
	"adviceHref":   AdvicePage,
	"backtestHref": BacktestPage,

	"spanned": func(s trail.Span) string { return formatSpan(time.Duration(s)) },

	"id": func(id *trail.FactID) string { return id.String() },
}

// timeField is a field of a form for a time.
type timeField struct{ Name, Value string }

// formatTime writes a time to the second, UTC.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// formatSpan writes a duration as people say it: two units at most.
func formatSpan(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= 10*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// pluralSuffix returns what makes a noun say that there are so many.
func pluralSuffix(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// block is a part of an advice: prose, or lines that can be pasted.
type block struct {
	Text string
	Code bool
}

// parseParagraphs parts an advice: indented lines can be pasted.
func parseParagraphs(advice string) []block {
	var out []block
	for line := range strings.SplitSeq(advice, "\n") {
		code := strings.HasPrefix(line, " ")
		text := strings.TrimSpace(line)
		switch n := len(out); {
		case text == "":
		case n > 0 && out[n-1].Code && code:
			out[n-1].Text += "\n" + text
		default:
			out = append(out, block{text, code})
		}
	}
	return out
}

// labelled is a value of a closed set.
type labelled interface{ Label() trail.Label }

// renderLabel renders the label of a value; a dash where there is none.
func renderLabel(of labelled) template.HTML { return renderTitled(of.Label()) }

// renderTitled renders a label, with its value and what it means as the title: the value is what SQL, JSON and metrics have.
func renderTitled(l trail.Label) template.HTML {
	if l.Value == "" {
		return "–"
	}
	title := l.Value
	if l.Text != "" {
		title += ": " + l.Text
	}
	return template.HTML(`<span title="` + template.HTMLEscapeString(title) + `">` + template.HTMLEscapeString(l.Short) + `</span>`) //nolint:gosec // both are escaped
}

// span is a part of a sentence.
type span struct {
	Text string
	Code bool
	Href string // of a document; empty: it is none
}

// documents is where the documents of the repository can be read, and documentNames are their names in sentences.
const documents = "https://github.com/evictrail/evictrail/blob/main/"

var documentNames = regexp.MustCompile(`\bdocs/[\w/-]+\.md\b`)

// splitProse splits a sentence at its backquotes: what stands between two of them is code. In the rest, names of documents are links.
func splitProse(sentence string) []span {
	var out []span
	for i, text := range strings.Split(sentence, "`") {
		if i%2 == 1 {
			out = append(out, span{Text: text, Code: true})
			continue
		}
		for at := documentNames.FindStringIndex(text); at != nil; at = documentNames.FindStringIndex(text) {
			name := text[at[0]:at[1]]
			out = append(out, span{Text: text[:at[0]]}, span{Text: name, Href: documents + name})
			text = text[at[1]:]
		}
		out = append(out, span{Text: text})
	}
	return slices.DeleteFunc(out, func(s span) bool { return s.Text == "" })
}

// renderCount renders a number. A zero that is not certain is a question mark.
func renderCount(n int, certain bool) template.HTML {
	if n == 0 && !certain {
		return `<b title="not known">?</b>`
	}
	return template.HTML(fmt.Sprintf("<b>%d</b>", n)) //nolint:gosec // of a number
}

// formatShare writes a share of 0..1 as per cent.
func formatShare(ratio *float64) string { return fmt.Sprintf("%.0f %%", 100**ratio) }

func buildHref(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	u := url.URL{Path: path, RawQuery: q.Encode()}
	return u.String()
}

func vmHref(cluster, namespace, name string) string {
	return buildHref("/vms/"+namespace+"/"+name, "cluster", cluster)
}

func nodeHref(cluster, node string) string { return buildHref("/nodes/"+node, "cluster", cluster) }

func loopHref(cluster string, id trail.FactID) string {
	return buildHref("/loops/"+id.String(), "cluster", cluster)
}
