package web

import (
	"net/http"
	"time"
)

// themeCookie keeps the choice of a browser.
const themeCookie = "evictrail-theme"

// Theme returns the theme that a visitor has chosen, dark or light; empty: none.
func Theme(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "dark" && c.Value != "light" {
		return ""
	}
	return c.Value
}

// chooseTheme is POST /theme: it keeps the choice and goes back to the page. It needs no script.
func chooseTheme(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	theme, back := r.PostFormValue("theme"), r.PostFormValue("back")
	if theme == "dark" || theme == "light" || theme == "auto" {
		kept := int((365 * 24 * time.Hour).Seconds())
		if theme == "auto" { // as the browser prefers: the choice is forgotten
			theme, kept = "", -1
		}
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure where we serve HTTPS: plain HTTP is for loopback, or was said aloud
			Name: themeCookie, Value: theme, Path: "/", MaxAge: kept, HttpOnly: true, SameSite: http.SameSiteLaxMode,
			Secure: r.TLS != nil,
		})
	}
	redirectToPath(w, r, back)
}
