package api

import (
	"bytes"
	_ "embed" // for the template
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/evictrail/evictrail/api/web"
)

//go:embed docs.html
var docsHTML string

// docsPolicy lets the page load its stylesheet and nothing else.
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// newDocs serves the document as a page. It is made when it is first asked for.
func newDocs() http.Handler {
	page := sync.OnceValues(docsPage)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := page()
		if err != nil {
			panic("write docs: " + err.Error()) // of files of ours: a test writes it
		}
		if theme := web.Theme(r); theme != "" { // chosen on another page
			body = bytes.Replace(body, []byte("<html "), []byte(`<html data-theme="`+theme+`" `), 1)
		}
		w.Header().Set("Cache-Control", uncached)
		w.Header().Set("Content-Security-Policy", docsPolicy)
		reply{contentType: "text/html; charset=utf-8", body: body}.write(w, r)
	})
}

func docsPage() ([]byte, error) {
	t, err := template.New("docs").Funcs(template.FuncMap{
		"upper":     strings.ToUpper,
		"typeOf":    func(s schema) string { return strings.Join(s.Type, " or ") },
		"component": func(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] },
		"of": func(tag string, paths fields) (of fields) {
			for _, path := range paths {
				for _, method := range path.Value.(fields) {
					if method.Value.(operation).Tags[0] == tag {
						of = append(of, field{strings.ToUpper(method.Name) + " " + path.Name, method.Value})
					}
				}
			}
			return of
		},
		"pretty": func(v any) (string, error) {
			var b bytes.Buffer
			err := WriteJSON(&b, v)
			return b.String(), err
		},
	}).Parse(docsHTML)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = t.Execute(&page, newDocument(Columns()))
	return page.Bytes(), err
}
