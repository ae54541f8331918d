package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// repository is where links lead to what the site does not have.
const repository = "https://github.com/evictrail/evictrail/"

// checkLinks returns what is wrong with the documents: links to what is not there, and HTML that is not shown. Addresses elsewhere are not
// asked.
func (s *site) checkLinks() []mistake {
	var out []mistake
	for _, name := range sortedKeys(s.documents) {
		d := s.documents[name]
		out = append(out, d.hidden...)
		for _, l := range d.links {
			if what := s.checkLink(d, l.destination); what != "" {
				out = append(out, mistake{d.Path, l.line, fmt.Sprintf("link %q: %s", l.destination, what)})
			}
		}
	}
	return out
}

// checkLink says what is wrong with a link of a document, or nothing.
func (s *site) checkLink(d *document, destination string) string {
	u, err := url.Parse(destination)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "mailto":
		return ""
	case u.Scheme != "" || u.Host != "":
		return "expected https, or a path relative to the file"
	case strings.HasPrefix(u.Path, "/"):
		return "expected a path relative to the file"
	}
	name := d.resolve(u)
	target, index := s.documents[name], s.documents[path.Join(name, "README.md")]
	info, err := fs.Stat(s.files, name)
	switch {
	case target != nil && target.Path != target.Source && d.Path == d.Source:
		return name + " is generated for the site and not in the repository"
	case target == nil && err != nil:
		return "there is no " + name
	case target == nil && info.IsDir():
		target = index
	}
	switch {
	case u.Fragment == "" || target != nil && target.hasAnchor(u.Fragment):
		return ""
	case target == nil:
		return name + " has no headings to link to"
	}
	return fmt.Sprintf("%s has no heading #%s", target.Path, u.Fragment)
}

// resolve returns the path in the repository that a relative link of the document leads to.
func (d *document) resolve(u *url.URL) string {
	if u.Path == "" {
		return d.Path
	}
	return path.Join(path.Dir(d.Path), u.Path)
}

// rewriteLinks has the links of a page lead to pages of the site, and to the repository where there is none. They must have been checked.
func (s *site) rewriteLinks(d *document) {
	for _, l := range d.links {
		u, err := url.Parse(l.destination)
		if err != nil || u.Scheme != "" || u.Path == "" {
			continue
		}
		to := []byte(s.locate(d, u))
		switch n := l.node.(type) {
		case *ast.Link:
			n.Destination = to
		case *ast.Image:
			n.Destination = to
		}
	}
}

// locate returns the address on the site, relative to a page, of what a link in it names.
func (s *site) locate(d *document, u *url.URL) string {
	name := d.resolve(u)
	for _, page := range []string{name, path.Join(name, "README.md")} {
		if target := s.pages[page]; target != nil {
			return (&url.URL{Path: relativePath(d.Target(), target.Target()), Fragment: u.Fragment}).String()
		}
	}
	if isAsset(name) {
		return relativePath(d.Target(), name)
	}
	return repository + "blob/main/" + name // GitHub leads from there to folders
}

// relativePath returns the path from one file of the site to another.
func relativePath(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}
