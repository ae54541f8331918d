package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// SiteOf returns the address of the site as the sender of a request reaches it, without a slash at its end.
func SiteOf(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// PageOf returns the address, below that of the site, of the page of a VM or a node; as of a moment, unless that is
// zero.
func PageOf(cluster string, of trail.Subject, at time.Time) string {
	path := "/nodes/" + of.Name
	if of.Kind != trail.SubjectNode {
		namespace, name := of.VM()
		path = "/vms/" + namespace + "/" + name
	}
	moment := ""
	if !at.IsZero() {
		moment = formatTimestamp(at)
	}
	return buildHref(path, "cluster", cluster, "at", moment)
}

// FactsPage returns the address, below that of the site, of the raw facts of a VM or a node in a span of time.
func FactsPage(cluster string, of trail.Subject, from, to time.Time) string {
	if of.Kind == trail.SubjectNode {
		return factsHref(cluster, "", of.Name, from.Add(-around), to.Add(around), nil, "")
	}
	namespace, name := of.VM()
	return factsHref(cluster, namespace+"/"+name, "", from.Add(-around), to.Add(around), nil, "")
}

// LoopPage returns the address, below that of the site, of the page of a loop.
func LoopPage(cluster string, id trail.FactID) string { return loopHref(cluster, id) }

// SearchPage returns the address, below that of the site, of what a search finds.
func SearchPage(cluster, text string) string {
	return buildHref("/search", "cluster", cluster, "q", text)
}

// ListPage returns the address, below that of the site, of the page that lists the rows of a view, with these
// parameters of the API; empty where there is none.
func ListPage(v trail.View, asked url.Values) string {
	i := slices.IndexFunc(lists, func(l list) bool { return l.view.Name == v.Name })
	if i < 0 {
		return ""
	}
	return strings.TrimSuffix(lists[i].path+"?"+asked.Encode(), "?")
}

// FrontPage returns the address, below that of the site, of the page of a cluster; of all clusters, where none is
// named.
func FrontPage(cluster string) string { return buildHref("/", "cluster", cluster) }

// LimitsPage returns the address, below that of the site, of the page that reports whether limits on parallel migrations fit.
func LimitsPage(cluster string) string { return buildHref(limitsPath, "cluster", cluster) }

// WeeklyPage returns the address, below that of the site, of the page of what happened week by week.
func WeeklyPage(cluster string) string { return buildHref(weeklyPath, "cluster", cluster) }

// AdvicePage returns the address, below that of the site, of the page that recommends settings.
func AdvicePage(cluster string) string { return buildHref(advicePath, "cluster", cluster) }

// BacktestPage returns the address, below that of the site, of the page that tries alerts on history.
func BacktestPage(cluster string) string { return buildHref(backtestPath, "cluster", cluster) }

// WhatIfPage returns the address, below that of the site, of the page that asks what another policy would have changed.
func WhatIfPage(cluster string) string { return buildHref("/whatif", "cluster", cluster) }
