package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// theme is a part of the navigation.
type theme struct {
	Name  string
	paths []string // of Markdown files, in order; those that a pattern matches are folded together
}

// themes has a place for every page of the site.
var themes = []theme{
	{"Start", []string{"README.md", "docs/install.md", "docs/lab.md", "docs/glossary.md"}},
	{"On call", []string{"docs/runbooks/README.md", "docs/routing.md", "docs/backtest.md", "docs/runbooks/*.md"}},
	{"Questions", []string{"docs/ask.md", "docs/plugins.md", "docs/mcp.md", "docs/sql.md", "docs/export.md", "docs/notify.md", "docs/dashboards.md", "docs/drains.md", "docs/whatif.md", "docs/requesters.md", "docs/node-load.md", "docs/move-costs.md", "docs/settings.md"}},
	{"Operate", []string{"docs/configuration.md", "docs/sources.md", "docs/audit.md", "docs/access.md", "docs/hub.md", "docs/retention.md", "docs/scale.md", "docs/standby.md", "docs/evidence.md", "docs/record.md", "docs/release.md"}},
	{"Reference", []string{commandsPath, apiPath, viewsPath, alertsPath, "docs/metrics.md", "CHANGELOG.md"}},
	{"Design", []string{"docs/architecture.md", "docs/guarantees.md", "docs/benchmarks.md", "docs/chaos.md", "docs/dependencies.md", "docs/adr/README.md", "docs/adr/*.md"}},
}

// menu is a theme with its pages.
type menu struct {
	Name  string
	Pages []*document // that stand open
	More  []*document // that are folded together
}

// Has reports whether a page is one of those that are folded together.
func (m menu) Has(page *document) bool { return slices.Contains(m.More, page) }

// arrangePages returns the navigation. Each page must have one place, and each place a page.
func arrangePages(pages map[string]*document) ([]menu, error) {
	var menus []menu
	var wrong []error
	placed := map[string]bool{}
	for _, t := range themes {
		for _, p := range t.paths {
			placed[p] = true
		}
	}
	for _, t := range themes {
		m := menu{Name: t.Name}
		for _, p := range t.paths {
			switch d := pages[p]; {
			case d != nil:
				m.Pages = append(m.Pages, d)
			case strings.Contains(p, "*"):
				for _, name := range sortedKeys(pages) {
					if ok, _ := path.Match(p, name); ok && !placed[name] {
						placed[name], m.More = true, append(m.More, pages[name])
					}
				}
			default:
				wrong = append(wrong, fmt.Errorf("%s: theme %q of test/site/themes.go names it, and it is not there", p, t.Name))
			}
		}
		menus = append(menus, m)
	}
	for _, name := range sortedKeys(pages) {
		if !placed[name] {
			wrong = append(wrong, fmt.Errorf("%s: no theme of test/site/themes.go names it", name))
		}
	}
	return menus, errors.Join(wrong...)
}

// listInOrder returns the pages as the navigation shows them.
func listInOrder(menus []menu) []*document {
	var out []*document
	for _, m := range menus {
		out = slices.Concat(out, m.Pages, m.More)
	}
	return out
}
