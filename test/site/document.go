package main

import (
	"bytes"
	"fmt"
	"html"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// document is a Markdown file, parsed.
type document struct {
	Path     string // in the repository, with slashes
	Source   string // what it is made from: a path in the repository; Path where people write it
	Title    string // the text of its first heading
	Sections []section
	links    []link
	hidden   []mistake // raw HTML, which no reader would see

	source   []byte
	root     ast.Node
	comments []ast.Node // are for who edits the source, not for readers
}

// section is a heading with what stands below it up to the next one.
type section struct {
	Level int    // 1 of the page
	ID    string // as GitHub names it; unique on the page
	Title string
	text  string // without markup
}

// link is a link or an image as it is written.
type link struct {
	node        ast.Node // *ast.Link or *ast.Image
	line        int      // from 1
	destination string
}

// mistake is what is wrong at a place of a file.
type mistake struct {
	path string
	line int // from 1
	what string
}

func (m mistake) String() string { return fmt.Sprintf("%s:%d: %s", m.path, m.line, m.what) }

// markdown is the dialect of GitHub. Headings get an anchor to copy.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(headingRenderer{}, 100))),
)

// parseDocument parses a Markdown file. made is what a page that nobody writes is made from, else empty.
func parseDocument(name, made string, source []byte) *document {
	d := &document{Path: name, Source: made, source: source, root: markdown.Parser().Parse(text.NewReader(source))}
	if made == "" {
		d.Source = name
	}
	ids := map[string]int{}
	_ = ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case entering && n.Kind() == ast.KindHeading:
			d.addSection(n.(*ast.Heading), ids)
			return ast.WalkSkipChildren, nil // its text is the section's title
		case entering:
			d.addNode(n)
		case n.Type() == ast.TypeBlock || n.Kind() == ast.KindText && n.(*ast.Text).SoftLineBreak():
			d.addText(" ")
		}
		return ast.WalkContinue, nil
	})
	for _, n := range d.comments {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	for i := range d.Sections {
		d.Sections[i].text = strings.Join(strings.Fields(d.Sections[i].text), " ")
	}
	return d
}

func (d *document) addSection(h *ast.Heading, ids map[string]int) {
	title := plainText(h, d.source)
	id := makeAnchor(title)
	if ids[id]++; ids[id] > 1 {
		id = fmt.Sprintf("%s-%d", id, ids[id]-1)
	}
	h.SetAttributeString("id", []byte(id))
	d.Sections = append(d.Sections, section{Level: h.Level, ID: id, Title: title})
	if d.Title == "" {
		d.Title = title
	}
	_ = ast.Walk(h, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // links in headings are links, too
		if entering && n.Kind() != ast.KindText {
			d.addLink(n)
		}
		return ast.WalkContinue, nil
	})
}

// addNode takes from a node what belongs to the document: text, links, and HTML that would be lost.
func (d *document) addNode(n ast.Node) {
	d.addLink(n)
	switch n := n.(type) {
	case *ast.Text:
		d.addText(string(n.Segment.Value(d.source)))
	case *ast.String:
		d.addText(string(n.Value))
	case *ast.AutoLink:
		d.addText(string(n.Label(d.source)))
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		d.addText(string(n.Lines().Value(d.source)))
	case *ast.RawHTML:
		d.addHTML(n, string(n.Segments.Value(d.source)))
	case *ast.HTMLBlock:
		d.addHTML(n, string(n.Lines().Value(d.source)))
	}
}

func (d *document) addText(text string) {
	if len(d.Sections) > 0 {
		d.Sections[len(d.Sections)-1].text += text
	}
}

func (d *document) addLink(n ast.Node) {
	switch l := n.(type) {
	case *ast.Link:
		d.links = append(d.links, link{n, d.line(n), string(l.Destination)})
	case *ast.Image:
		d.links = append(d.links, link{n, d.line(n), string(l.Destination)})
	}
}

func (d *document) addHTML(n ast.Node, text string) {
	if strings.HasPrefix(strings.TrimSpace(text), "<!--") {
		d.comments = append(d.comments, n)
	} else {
		d.hidden = append(d.hidden, mistake{d.Path, d.line(n), fmt.Sprintf("%s is HTML, which is not shown: write it as code", strings.TrimSpace(text))})
	}
}

// line returns the number of the line that a node begins on, from 1.
func (d *document) line(n ast.Node) int { return 1 + bytes.Count(d.source[:n.Pos()], []byte("\n")) }

// hasAnchor reports whether a link may lead to an ID of the page.
func (d *document) hasAnchor(id string) bool {
	for _, s := range d.Sections {
		if s.ID == id {
			return true
		}
	}
	return false
}

// plainText returns the text of a node without markup.
func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, is := n.(*ast.Text); is && entering {
			out.Write(util.UnescapePunctuations(t.Segment.Value(source)))
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// makeAnchor returns the ID that GitHub makes of a heading: small letters, digits, hyphens and underscores, a hyphen for each space.
func makeAnchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// Target returns where the page lies on the site: docs/sql.html for docs/sql.md, index.html for a README.
func (d *document) Target() string {
	dir, name := path.Split(d.Path)
	if name == "README.md" {
		name = "index.md"
	}
	return dir + strings.TrimSuffix(name, ".md") + ".html"
}

// Headings returns what is listed as being on the page.
func (d *document) Headings() []section {
	var out []section
	for _, s := range d.Sections {
		if s.Level == 2 || s.Level == 3 {
			out = append(out, s)
		}
	}
	return out
}

// render returns the document as HTML. Wide tables scroll on their own, also by the keyboard.
func (d *document) render() (string, error) {
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, d.source, d.root); err != nil {
		return "", fmt.Errorf("render %s: %w", d.Path, err)
	}
	return strings.NewReplacer(
		"<table>", `<div class="scroll" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre tabindex="0">`,
	).Replace(out.String()), nil
}

// headingRenderer writes headings with their anchor.
type headingRenderer struct{}

func (headingRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		level := n.(*ast.Heading).Level
		value, _ := n.AttributeString("id")
		id := html.EscapeString(string(value.([]byte)))
		if entering {
			_, _ = fmt.Fprintf(w, `<h%d id="%s">`, level, id)
			return ast.WalkContinue, nil
		}
		if level > 1 {
			_, _ = fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to this section">#</a>`, id)
		}
		_, _ = fmt.Fprintf(w, "</h%d>\n", level)
		return ast.WalkContinue, nil
	})
}
