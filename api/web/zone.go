package web

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zone database
)

// zone is the time zone in which a page shows times. Times of addresses and forms, sentences and pictures are UTC in every zone.
type zone struct {
	Name  string         // as it stands in the address: empty for UTC, zoneLocal, or a name of the time zone database
	named *time.Location // nil: the server writes UTC
}

// zoneParam is the parameter of every page that says its zone; zoneLocal is the zone of the browser, which only its script knows.
const (
	zoneParam = "tz"
	zoneLocal = "local"
	zoneUTC   = "UTC"
	zoneMost  = 64 // bytes of a name
)

// parseZone reads the zone that is asked for.
func parseZone(name string) (zone, error) {
	switch {
	case name == "" || strings.EqualFold(name, zoneUTC):
		return zone{}, nil
	case strings.EqualFold(name, zoneLocal):
		return zone{Name: zoneLocal}, nil
	}
	if len(name) <= zoneMost {
		if named, err := time.LoadLocation(name); err == nil {
			return zone{name, named}, nil
		}
	}
	return zone{}, fmt.Errorf("%w: %s=%q: expected UTC, local or a name such as Europe/Berlin", errBadQuestion, zoneParam, name)
}

// Buttons are the zones between which a page switches.
func (z zone) Buttons() []choice {
	out := []choice{{"UTC", zoneUTC}, {"Local", zoneLocal}}
	if z.named != nil {
		out = append(out, choice{z.Name, z.Name})
	}
	return out
}

// Chosen reports whether times are shown in a zone.
func (z zone) Chosen(name string) bool { return z.Name == name || z.Name == "" && name == zoneUTC }

// Text says in which zone times are.
func (z zone) Text() string {
	if z.named == nil {
		return "All times are UTC."
	}
	return "Times are in " + z.Name + "; sentences and pictures are in UTC."
}

// withoutZone are the beginnings of paths that are no pages of ours.
var withoutZone = []string{"//", "/api/", "/assets/", "/docs", "/livez", "/metrics", "/readyz"}

var (
	// timeElement is what the templates "time" and "moment" write.
	timeElement = regexp.MustCompile(`<time datetime="([^"]+)"( data-zone)?>[^<]*</time>`)
	// ownLink is an attribute that leads to another address of this site.
	ownLink = regexp.MustCompile(` (href|data-from)="(/[^"]*)"`)
	// ownForm is a form that leads to another page, but for the one that switches zones.
	ownForm = regexp.MustCompile(`<form (?:class="[a-y][^"]*" )?(?:action="[^"]*" )?method="get"[^>]*>`)
)

// translatePage writes a page in the zone: its times, where the server knows the zone, and the zone in what leads to other pages. Attributes
// and texts of users have no quotes and no angle brackets by then: templates escape them.
func (z zone) translatePage(page []byte) []byte {
	if z.Name == "" {
		return page
	}
	if z.named != nil {
		page = timeElement.ReplaceAllFunc(page, func(element []byte) []byte {
			parts := timeElement.FindSubmatch(element)
			at, err := time.Parse(time.RFC3339Nano, string(parts[1]))
			if err != nil {
				return element
			}
			layout := "2006-01-02 15:04:05"
			if len(parts[2]) > 0 {
				layout += " MST"
			}
			return fmt.Appendf(nil, `<time datetime="%s"%s>%s</time>`, parts[1], parts[2], at.In(z.named).Format(layout))
		})
	}
	page = ownLink.ReplaceAllFunc(page, func(link []byte) []byte {
		parts := ownLink.FindSubmatch(link)
		u, err := url.Parse(html.UnescapeString(string(parts[2])))
		if err != nil || slices.ContainsFunc(withoutZone, func(prefix string) bool { return strings.HasPrefix(u.Path, prefix) }) {
			return link
		}
		q := u.Query()
		q.Set(zoneParam, z.Name)
		u.RawQuery = q.Encode()
		return fmt.Appendf(nil, ` %s="%s"`, parts[1], html.EscapeString(u.String()))
	})
	return ownForm.ReplaceAllFunc(page, func(form []byte) []byte {
		return fmt.Appendf(nil, `%s<input type="hidden" name="%s" value="%s">`, form, zoneParam, html.EscapeString(z.Name))
	})
}
