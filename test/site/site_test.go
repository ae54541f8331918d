package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/test/build"
)

// repositorySite is the site of the work tree.
var repositorySite = sync.OnceValues(func() (*site, error) {
	commands, err := readCommands()
	if err != nil {
		return nil, err
	}
	return newSite(os.DirFS(build.Root()), commands)
})

// TestMarkdown fails where a link in any Markdown file of the repository leads nowhere, a page has no place in the navigation, or HTML would be
// lost. Each line of the error names the file, the line and what is wrong.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	_, err := repositorySite()
	require.NoError(t, err)
}

// aroundPages are the files of a repository that a site of few pages needs.
func aroundPages(t *testing.T, pages map[string]string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for _, name := range []string{openAPIPath, "api/columns.json", iconPath} {
		text, err := os.ReadFile(filepath.Join(build.Root(), name))
		require.NoError(t, err)
		out[name] = &fstest.MapFile{Data: text}
	}
	for _, theme := range themes {
		for _, name := range theme.paths {
			if !strings.Contains(name, "*") && !slices.Contains([]string{commandsPath, apiPath, viewsPath, alertsPath}, name) {
				out[name] = &fstest.MapFile{Data: []byte("# A page\n\n## A part\n")}
			}
		}
	}
	for _, group := range alerts.Groups(alerts.DefaultOptions()) { // the page of alerts links to them
		for _, r := range group.Rules {
			if r.Alert != "" {
				out["docs/runbooks/"+r.Alert+".md"] = &fstest.MapFile{Data: []byte("# " + r.Alert + "\n")}
			}
		}
	}
	for name, text := range pages {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// TestMistakesAreNamed makes each mistake once.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, text, says string }{
		"no such file":         {"docs/sql.md", "# SQL\n\nSome\ntext, [then](nowhere.md) a link.\n", `docs/sql.md:4: link "nowhere.md": there is no docs/nowhere.md`},
		"no such heading":      {"docs/sql.md", "# SQL\n\n- [here](#there)\n", `docs/sql.md:3: link "#there": docs/sql.md has no heading #there`},
		"elsewhere no heading": {"docs/adr/0001-a.md", "# A\n\n| a |\n|---|\n| b |\n| [c](../ask.md#part) |\n", `docs/adr/0001-a.md:6: link "../ask.md#part": docs/ask.md has no heading #part`},
		"a folder's heading":   {"docs/sql.md", "# SQL\n\n[here](runbooks#there)\n", `docs/sql.md:3: link "runbooks#there": docs/runbooks/README.md has no heading #there`},
		"a file's heading":     {"docs/sql.md", "# SQL\n\n[here](../api/openapi.yaml#there)\n", "api/openapi.yaml has no headings to link to"},
		"in a heading":         {"docs/sql.md", "# SQL\n\n## See [this](that.md)\n", `docs/sql.md:3: link "that.md": there is no docs/that.md`},
		"by reference":         {"docs/sql.md", "# SQL\n\nSee [this].\n\n[this]: that.md\n", `docs/sql.md:3: link "that.md": there is no docs/that.md`},
		"a picture":            {"docs/sql.md", "# SQL\n\n![a](images/a.png)\n", `docs/sql.md:3: link "images/a.png": there is no docs/images/a.png`},
		"above the repository": {"docs/sql.md", "# SQL\n\n[up](../../up.md)\n", `docs/sql.md:3: link "../../up.md": there is no ../up.md`},
		"from the top":         {"docs/sql.md", "# SQL\n\n[top](/README.md)\n", `docs/sql.md:3: link "/README.md": expected a path relative to the file`},
		"another scheme":       {"docs/sql.md", "# SQL\n\n[a](file:///etc/hosts)\n", "expected https, or a path relative to the file"},
		"no address":           {"docs/sql.md", "# SQL\n\n[a](<%zz>)\n", "invalid URL escape"},
		"for the site alone":   {"docs/sql.md", "# SQL\n\n[a](views.md)\n", "docs/views.md is generated for the site and not in the repository"},
		"HTML":                 {"docs/sql.md", "# SQL\n\nCall it\nwith <name> or so.\n", "docs/sql.md:4: <name> is HTML, which is not shown: write it as code"},
		"a block of HTML":      {"docs/sql.md", "# SQL\n\n<div>lost</div>\n", "docs/sql.md:3: <div>lost</div> is HTML"},
		"beside the site":      {"deploy/dev/README.md", "[a](b.md)\n", `deploy/dev/README.md:1: link "b.md": there is no deploy/dev/b.md`},
		"no title":             {"docs/sql.md", "Text.\n", "docs/sql.md: expected a heading of level 1 first"},
		"no place":             {"docs/new.md", "# New\n", "docs/new.md: no theme of test/site/themes.go names it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newSite(aroundPages(t, map[string]string{tt.path: tt.text}), "# Commands\n")
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), "\n", "nothing else is wrong")
		})
	}
	t.Run("no page", func(t *testing.T) {
		t.Parallel()
		files := aroundPages(t, nil)
		delete(files, "docs/sql.md")
		_, err := newSite(files, "# Commands\n")
		require.ErrorContains(t, err, `docs/sql.md: theme "Questions" of test/site/themes.go names it, and it is not there`)
	})
}

// TestLinksLeadToPages builds a site and looks where links lead.
func TestLinksLeadToPages(t *testing.T) {
	t.Parallel()
	files := aroundPages(t, map[string]string{
		"README.md":            "# Top\n\n[a](docs/sql.md#a--b_c) [b](docs/runbooks/) [c](docs/adr/) [d](docs/images/a.png) [e](api/openapi.yaml) [f](https://example.org/x.md) [g](#top)\n",
		"docs/sql.md":          "# SQL\n\n## A & `b_c`!\n\n## Übung 2\n\n## A & `b_c`!\n\n[a](../README.md) [b](runbooks/EvictrailNoLeader.md) [c](../deploy/dev/README.md) [d](#übung-2) [e](#a--b_c-1)\n\n<!-- not shown -->\n",
		"docs/adr/0001-a.md":   "# 1. First\n\n[a](../sql.md)\n",
		"docs/images/a.png":    "picture",
		"deploy/dev/README.md": "# Dev\n",
	})
	s, err := newSite(files, "# Commands\n")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, s.write(dir))
	for name, links := range map[string][]string{
		"index.html": {"docs/sql.html#a--b_c", "docs/runbooks/index.html", "docs/adr/index.html", "docs/images/a.png", repository + "blob/main/api/openapi.yaml", "https://example.org/x.md", "#top"},
		"docs/sql.html": {
			"../index.html", "../docs/runbooks/EvictrailNoLeader.html", repository + "blob/main/deploy/dev/README.md", "#%C3%BCbung-2", "#a--b_c-1",
		},
		"docs/adr/0001-a.html":     {"../../docs/sql.html"},
		"docs/adr/index.html":      {"../../docs/adr/0001-a.html"},
		"docs/alerts.html":         {"../docs/runbooks/EvictrailNoLeader.html"},
		"docs/runbooks/index.html": {"../../index.html", "../../docs/ask.html"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		for _, link := range links {
			require.Contains(t, string(page), `href="`+link+`"`, name)
		}
		require.NotContains(t, string(page), "not shown")
	}
	require.FileExists(t, filepath.Join(dir, "docs/images/a.png"))
}

// address finds what a page refers to.
var address = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// TestSiteIsWhole builds the site of the repository and follows every address in it: each page, file and anchor is there, and nothing is
// loaded from elsewhere.
func TestSiteIsWhole(t *testing.T) {
	t.Parallel()
	s, err := repositorySite()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, s.write(dir))
	pages := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		pages[name] = string(text)
		return err
	}))
	require.Greater(t, len(pages), 80)
	for name, page := range pages {
		require.NotContains(t, page, "raw HTML omitted", name)
		if filepath.Ext(name) != ".html" {
			continue
		}
		require.NotRegexp(t, `(?:src|<link[^>]* href)="https?:`, page, name)
		for _, found := range address.FindAllStringSubmatch(page, -1) {
			if strings.HasPrefix(found[1], "https://") {
				continue
			}
			file, id, anchored := strings.Cut(found[1], "#")
			file = filepath.Join(filepath.Dir(name), file)
			if strings.HasPrefix(found[1], "#") {
				file = name
			}
			require.Contains(t, pages, file, "%s links to %s", name, found[1])
			if anchored {
				require.Contains(t, pages[file], `id="`+id+`"`, "%s links to %s", name, found[1])
			}
		}
	}
}

// TestReferencesNameEverything looks for every metric, alert, view, column and route on its page. That the commands are whole is tested beside
// them.
func TestReferencesNameEverything(t *testing.T) {
	t.Parallel()
	s, err := repositorySite()
	require.NoError(t, err)
	headings := func(page string) map[string]bool {
		out := map[string]bool{}
		for _, part := range s.pages[page].Sections {
			out[part.Title] = true
		}
		return out
	}
	for _, m := range metrics.Catalogue() {
		require.Contains(t, string(s.pages["docs/metrics.md"].source), "| `"+m.Name+"` | "+string(m.Type)+" |")
	}
	onAlerts := headings(alertsPath)
	for _, group := range alerts.Groups(alerts.DefaultOptions()) {
		for _, r := range group.Rules {
			require.True(t, onAlerts[r.Record+r.Alert], r.Record+r.Alert)
			require.Contains(t, string(s.pages[alertsPath].source), "\n```\n"+strings.TrimSpace(r.Expr)+"\n```\n")
		}
	}
	text, err := os.ReadFile(filepath.Join(build.Root(), "api/columns.json"))
	require.NoError(t, err)
	var columns []column
	require.NoError(t, json.Unmarshal(text, &columns))
	onViews := headings(viewsPath)
	require.Greater(t, len(columns), 200)
	for _, c := range columns {
		require.True(t, onViews[c.View], c.View)
		require.Contains(t, string(s.pages[viewsPath].source), "| `"+c.Name+"` "+c.Type+" | "+escapeMarkdown(c.About)+" |")
	}
	text, err = os.ReadFile(filepath.Join(build.Root(), openAPIPath))
	require.NoError(t, err)
	var api struct{ Paths map[string]map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &api))
	onAPI := headings(apiPath)
	require.Greater(t, len(api.Paths), 25)
	for path, methods := range api.Paths {
		for method := range maps.Keys(methods) {
			require.True(t, onAPI[strings.ToUpper(method)+" "+path], "%s %s", method, path)
		}
	}
	onCommands := headings(commandsPath)
	for _, command := range []string{"run", "why", "why-not", "loops", "schema up", "generate alerts", "completion bash"} {
		require.True(t, onCommands["evictrail "+command], command)
	}
}

// TestIndex reads the index as the search does. test/browser tests what is found first.
func TestIndex(t *testing.T) {
	t.Parallel()
	s, err := repositorySite()
	require.NoError(t, err)
	script, err := s.buildIndex()
	require.NoError(t, err)
	text := strings.TrimSuffix(strings.TrimPrefix(string(script), "window.searchIndex = "), ";\n")
	var entries []entry
	require.NoError(t, json.Unmarshal([]byte(text), &entries))
	find := func(word string) (addresses []string) {
		for _, e := range entries {
			if strings.Contains(strings.ToLower(strings.Join(e[1:], " ")), word) {
				addresses = append(addresses, e[0])
			}
		}
		return addresses
	}
	require.Contains(t, find("dual retry loop"), "docs/runbooks/index.html")
	require.Contains(t, find("cooldown"), "index.html#concepts")
	require.Contains(t, find("evictrail why-not"), "docs/cli.html#evictrail-why-not")
	require.Contains(t, find("evictrail_loops_total"), "docs/metrics.html")
	for _, e := range entries {
		require.NotContains(t, e[3], "\n")
	}
}
