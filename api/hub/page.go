package hub

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/api/web"
)

// pageMost bounds a page of a source, in bytes.
const pageMost = 32 << 20

// modifyAnswer has the page of a source say whose part is missing here, and lead to where its clusters are here. What a source sets for its own
// host, cookies and how browsers come to it, is dropped.
func (s *source) modifyAnswer(answer *http.Response) error {
	a := askingOf(answer.Request.Context())
	for _, name := range []string{"Set-Cookie", "Strict-Transport-Security", api.MissingHeader} {
		answer.Header.Del(name)
	}
	p := pageOf{s, a, passingOf(answer.Request.Context()).host}
	if to := answer.Header.Get("Location"); to != "" {
		answer.Header.Set("Location", p.rewriteHref(to))
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "text/html" || answer.Request.Method == http.MethodHead {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, pageMost+1))
	_ = answer.Body.Close()
	switch {
	case err != nil:
		return err
	case len(body) > pageMost:
		return fmt.Errorf("the page has more than %d MiB", pageMost>>20)
	}
	if body, err = p.rewrite(body); err != nil {
		return err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// pageOf is the page of a source as it is shown here.
type pageOf struct {
	source *source
	asking *asking
	host   string // of the hub, as the visitor names it
}

// rewrite returns the page with the strip of the hub above its content, and with the names that clusters have here.
func (p pageOf) rewrite(page []byte) ([]byte, error) {
	strip, err := web.RenderStrip(p.asking.listMissing())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(len(page) + len(strip))
	choosing := false // within the choice of a cluster
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if errors.Is(z.Err(), io.EOF) {
				return out.Bytes(), nil
			}
			return nil, z.Err()
		}
		raw := bytes.Clone(z.Raw())
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			out.Write(raw)
			continue
		}
		t := z.Token()
		switch t.Data {
		case "main":
			out.Write(strip)
		case "select":
			choosing = findAttr(t, "name") == "cluster"
		case "option":
			if choosing && !hasAttr(t, "value") && z.Next() == html.TextToken {
				text := z.Token()
				if name := p.asking.nameOf(p.source, text.Data); name != text.Data {
					t.Attr = append(t.Attr, html.Attribute{Key: "value", Val: name})
					raw = []byte(t.String())
				}
				out.Write(raw)
				out.WriteString(text.String())
				continue
			}
		}
		if p.rewriteAttrs(&t) {
			raw = []byte(t.String())
		}
		out.Write(raw)
	}
}

// rewriteAttrs has the attributes of a tag name clusters as they are named here. It reports whether anything changed.
func (p pageOf) rewriteAttrs(t *html.Token) (changed bool) {
	for i, x := range t.Attr {
		value := x.Val
		switch x.Key {
		case "href", "action", "data-live", "data-from":
			value = p.rewriteHref(x.Val)
		case "data-address": // for paper
			if path, is := strings.CutPrefix(x.Val, p.source.url.Host); is {
				value = p.host + p.rewriteHref(path)
			}
		case "data-cluster":
			value = p.asking.nameOf(p.source, x.Val)
		case "value":
			switch findAttr(*t, "name") {
			case "cluster":
				value = p.asking.nameOf(p.source, x.Val)
			case "back":
				value = p.rewriteHref(x.Val)
			}
		}
		if value != x.Val {
			t.Attr[i].Val, changed = value, true
		}
	}
	return changed
}

// rewriteHref has an address of a page of ours name a cluster as it is named here.
func (p pageOf) rewriteHref(address string) string {
	if !strings.HasPrefix(address, "/") || !strings.Contains(address, "cluster=") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	q := u.Query()
	name := p.asking.nameOf(p.source, q.Get("cluster"))
	if name == q.Get("cluster") {
		return address
	}
	q.Set("cluster", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func findAttr(t html.Token, key string) string {
	for _, x := range t.Attr {
		if x.Key == key {
			return x.Val
		}
	}
	return ""
}

func hasAttr(t html.Token, key string) bool {
	for _, x := range t.Attr {
		if x.Key == key {
			return true
		}
	}
	return false
}
