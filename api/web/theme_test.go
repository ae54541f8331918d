package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThemeIsKeptAndLeadsBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, theme, back, location, kept string }{
		{"dark", "dark", "/vms/shop/db-1?cluster=prod", "/vms/shop/db-1?cluster=prod", "dark"},
		{"light", "light", "/", "/", "light"},
		{"as the browser prefers", "auto", "/", "/", ""},
		{"no theme of ours", "loud", "/", "/", ""},
		{"somebody else's page", "dark", "https://example.org/", "/", "dark"},
		{"somebody else's page, without its scheme", "dark", "//example.org/", "/", "dark"},
		{"somebody else's page, as browsers read it", "dark", `/\example.org/`, "/", "dark"},
		{"a header of its own", "dark", "/\r\nSet-Cookie: a=b", "/", "dark"},
		{"nowhere", "dark", "", "/", "dark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			form := url.Values{"theme": {c.theme}, "back": {c.back}}.Encode()
			r := httptest.NewRequest(http.MethodPost, "/theme", strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			chooseTheme(w, r)
			answer := w.Result()
			require.Equal(t, http.StatusSeeOther, answer.StatusCode)
			require.Equal(t, c.location, answer.Header.Get("Location"))
			again := httptest.NewRequest(http.MethodGet, "/", nil)
			for _, cookie := range answer.Cookies() {
				again.AddCookie(cookie)
			}
			require.Equal(t, c.kept, Theme(again))
		})
	}
}
