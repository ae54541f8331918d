package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// site is the documentation: what is written and what is generated.
type site struct {
	files     fs.FS                // the repository
	documents map[string]*document // every Markdown file of the repository and every generated page, by path
	pages     map[string]*document // those that are pages of the site
	menus     []menu
}

//go:embed page.html site.css site.js
var looks embed.FS

// newSite reads the repository. commands is the reference of the command line. The error lists every mistake in the Markdown, one a line.
func newSite(files fs.FS, commands string) (*site, error) {
	s := &site{files: files, documents: map[string]*document{}, pages: map[string]*document{}}
	if err := s.readDocuments(); err != nil {
		return nil, err
	}
	if err := s.generatePages(commands); err != nil {
		return nil, err
	}
	var err error
	if s.menus, err = arrangePages(s.pages); err != nil {
		return nil, err
	}
	for _, m := range s.checkLinks() {
		err = errors.Join(err, errors.New(m.String()))
	}
	return s, err
}

// readDocuments parses every Markdown file of the repository.
func (s *site) readDocuments() error {
	return fs.WalkDir(s.files, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("look for Markdown: %w", err)
		case e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || name == "bin" || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		source, err := fs.ReadFile(s.files, name)
		if err != nil {
			return fmt.Errorf("read Markdown: %w", err)
		}
		return s.add(parseDocument(name, "", source))
	})
}

// add adds a document, and a page where it is one.
func (s *site) add(d *document) error {
	s.documents[d.Path] = d
	if !strings.HasPrefix(d.Path, "docs/") && d.Path != "README.md" && d.Path != "CHANGELOG.md" {
		return nil
	}
	if len(d.Sections) == 0 || d.Sections[0].Level != 1 {
		return fmt.Errorf("%s: expected a heading of level 1 first: it is the title of the page", d.Path)
	}
	s.pages[d.Path] = d
	return nil
}

// generatePages adds the pages that nobody writes.
func (s *site) generatePages(commands string) error {
	for _, g := range []struct {
		path, source string
		render       func() (string, error)
	}{
		{commandsPath, "cmd/evictrail", func() (string, error) { return commands, nil }},
		{apiPath, openAPIPath, func() (string, error) { return renderAPI(s.files) }},
		{viewsPath, "migrations/views", func() (string, error) { return renderViews(s.files) }},
		{alertsPath, "alerts", func() (string, error) { return renderAlerts(), nil }},
	} {
		text, err := g.render()
		if err != nil {
			return fmt.Errorf("generate %s: %w", g.path, err)
		}
		if err := s.add(parseDocument(g.path, g.source, []byte(text))); err != nil {
			return err
		}
	}
	return nil
}

// pageData is what page.html shows.
type pageData struct {
	Page           *document
	Content        template.HTML
	Root           string // the way to the top of the site: "", "../" or "../../"
	Menus          []menu
	Previous, Next *document
	Edit           string // address of what the page is made from
}

// write writes the files of the site into a folder.
func (s *site) write(dir string) error {
	page, err := template.New("page.html").Funcs(template.FuncMap{"breakable": insertBreaks}).ParseFS(looks, "page.html")
	if err != nil {
		return fmt.Errorf("parse template: %w", err)
	}
	files, err := s.collectAssets()
	if err != nil {
		return err
	}
	all := listInOrder(s.menus)
	for i, d := range all {
		s.rewriteLinks(d)
		content, err := d.render()
		if err != nil {
			return err
		}
		data := pageData{
			Page: d, Content: template.HTML(content), Menus: s.menus, //nolint:gosec // goldmark leaves out HTML that is written in Markdown
			Root: relativePath(d.Target(), ""), Edit: repository + "blob/main/" + d.Source,
		}
		if i > 0 {
			data.Previous = all[i-1]
		}
		if i < len(all)-1 {
			data.Next = all[i+1]
		}
		var out bytes.Buffer
		if err := page.Execute(&out, data); err != nil {
			return fmt.Errorf("write %s: %w", d.Target(), err)
		}
		files[d.Target()] = out.Bytes()
	}
	for name, content := range files {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a web server reads it
			return fmt.Errorf("write site: %w", err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return fmt.Errorf("write site: %w", err)
		}
	}
	return nil
}

// innerCapital finds where a name such as EvictrailStoreDown may be broken.
var innerCapital = regexp.MustCompile(`([a-z])([A-Z])`)

// insertBreaks returns a title that may go on in the next line within a name.
func insertBreaks(title string) template.HTML {
	return template.HTML(innerCapital.ReplaceAllString(html.EscapeString(title), "$1<wbr>$2")) //nolint:gosec // it is escaped, and no entity has capitals inside
}

// The files that are copied.
const (
	imagesPath = "docs/images/"
	iconPath   = "api/web/assets/evictrail.svg"
)

func isAsset(name string) bool { return strings.HasPrefix(name, imagesPath) }

// collectAssets returns the files beside the pages by their paths on the site: pictures, looks and the index of the search.
func (s *site) collectAssets() (map[string][]byte, error) {
	out := map[string][]byte{}
	read := func(from fs.FS, name, to string) error {
		content, err := fs.ReadFile(from, name)
		out[to] = content
		return err
	}
	index, err := s.buildIndex()
	out["search-index.js"] = index
	err = errors.Join(err, read(looks, "site.css", "site.css"), read(looks, "site.js", "site.js"), read(s.files, iconPath, path.Base(iconPath)))
	images, e := fs.Glob(s.files, imagesPath+"*")
	for _, name := range images {
		err = errors.Join(err, read(s.files, name, name))
	}
	if err = errors.Join(err, e); err != nil {
		return nil, fmt.Errorf("collect files: %w", err)
	}
	return out, nil
}

// entry is one section in the index of the search: address, title of the page, heading (empty of the page itself), text.
type entry [4]string

// listEntries returns the sections of all pages in the order of the navigation.
func (s *site) listEntries() []entry {
	var out []entry
	for _, d := range listInOrder(s.menus) {
		for _, part := range d.Sections {
			e := entry{d.Target() + "#" + part.ID, d.Title, part.Title, part.text}
			if part.Level == 1 {
				e[0], e[2] = d.Target(), ""
			}
			out = append(out, e)
		}
	}
	return out
}

// buildIndex returns the index as a script, since a page that was opened as a file may load no JSON.
func (s *site) buildIndex() ([]byte, error) {
	text, err := json.Marshal(s.listEntries())
	return slices.Concat([]byte("window.searchIndex = "), text, []byte(";\n")), err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
