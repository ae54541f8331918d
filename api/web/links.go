package web

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Links says where else pages lead. The zero value leads nowhere.
type Links struct {
	Grafana  string   // address of Grafana, below which the dashboards of evictrail are by their UIDs
	Consoles []string // addresses of pages of the cluster's console, with placeholders; see Check
}

// placeholder is a name in an address that pages fill in.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// placeholders are the names that pages know: of their cluster, and of their VM or node.
var placeholders = []string{"{cluster}", "{namespace}", "{name}", "{node}"}

// Check returns an error where an address cannot be linked to. Consoles may have the placeholders {cluster}, {namespace}, {name} and {node}.
func (l Links) Check() error {
	var wrong []error
	if l.Grafana != "" && !isWebAddress(l.Grafana) {
		wrong = append(wrong, fmt.Errorf("grafana-url %q: expected http or https://HOST[/PATH]", l.Grafana))
	}
	for _, console := range l.Consoles {
		if !isWebAddress(placeholder.ReplaceAllString(console, "x")) {
			wrong = append(wrong, fmt.Errorf("console-url %q: expected http or https://HOST[/PATH], with {cluster}, {namespace}, {name} or {node}", console))
		}
		for _, name := range placeholder.FindAllString(console, -1) {
			if !slices.Contains(placeholders, name) {
				wrong = append(wrong, fmt.Errorf("console-url %q: %s is unknown: expected {cluster}, {namespace}, {name} or {node}", console, name))
			}
		}
	}
	return errors.Join(wrong...)
}

func isWebAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// place is what a page is about, for other programs. What a page does not have is empty.
type place struct {
	cluster, namespace, name, node string
	from, to                       time.Time
	dashboard                      string // UID of the one in Grafana that shows the same
}

// place returns what the page is about; ok is false where it is about nothing that other programs show.
func (f frame) place() (p place, ok bool) {
	switch b := f.Content.(type) {
	case vmBody:
		return place{cluster: b.Cluster, namespace: b.Namespace, name: b.Name, node: b.Node, from: b.Chart.From, to: b.Chart.To, dashboard: "evictrail-vm"}, true
	case nodeBody:
		p = place{cluster: b.Cluster, node: b.Node, from: b.Chart.From, to: b.Chart.To, dashboard: "evictrail-loop"}
		if len(b.Drains) > 0 && len(b.Loops) == 0 {
			p.dashboard = "evictrail-drain"
		}
		return p, true
	case loopBody:
		return place{cluster: b.Cluster, namespace: b.Loop.Namespace, name: b.Loop.VMI, node: b.Loop.Node, from: b.Chart.From, to: b.Chart.To, dashboard: "evictrail-loop"}, true
	case frontBody:
		if b.Overview == nil {
			return place{dashboard: "evictrail-fleet"}, len(b.All) > 0
		}
		return place{cluster: f.Cluster, dashboard: "evictrail-overview"}, true
	}
	return place{}, false
}

// Elsewhere returns links from the page to what other programs show of the same.
func (f frame) Elsewhere() []choice {
	p, ok := f.place()
	if !ok {
		return nil
	}
	var out []choice
	if f.links.Grafana != "" {
		out = append(out, choice{"Grafana", p.grafanaHref(f.links.Grafana)})
	}
	for _, console := range f.links.Consoles {
		if href, ok := p.consoleHref(console); ok {
			out = append(out, choice{nameConsole(console), href})
		}
	}
	return out
}

// grafanaHref is the address of the dashboard, with its variables and the time of the page.
func (p place) grafanaHref(grafana string) string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("var-cluster", p.cluster)
	set("var-node", p.node)
	set("var-namespace", p.namespace)
	set("var-vmi", p.name)
	if !p.from.IsZero() && !p.to.IsZero() {
		q.Set("from", strconv.FormatInt(p.from.UnixMilli(), 10))
		q.Set("to", strconv.FormatInt(p.to.UnixMilli(), 10))
	}
	return strings.TrimSuffix(strings.TrimRight(grafana, "/")+"/d/"+p.dashboard+"?"+q.Encode(), "?")
}

// consoleHref fills in an address; ok is false where the page does not have all that it names. Values are escaped for paths and for queries.
func (p place) consoleHref(console string) (href string, ok bool) {
	ok = true
	href = placeholder.ReplaceAllStringFunc(console, func(name string) string {
		value := map[string]string{"{cluster}": p.cluster, "{namespace}": p.namespace, "{name}": p.name, "{node}": p.node}[name]
		if value == "" {
			ok = false
		}
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})
	return href, ok
}

// nameConsole names a page of the console by what it is about.
func nameConsole(console string) string {
	switch {
	case strings.Contains(console, "{name}"):
		return "VM in the console"
	case strings.Contains(console, "{node}"):
		return "Node in the console"
	case strings.Contains(console, "{namespace}"):
		return "Namespace in the console"
	}
	return "Console"
}
