package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// Visitor is who looks at a page.
type Visitor struct {
	Name  string // empty where nobody is asked who they are
	Scope trail.Scope
}

// Refusal says why somebody is not let in, or not answered now, and what to do. With status 401 they may sign in.
type Refusal struct {
	Status int
	Text   string
	Retry  time.Duration // after which the page may be loaded again; 0: nobody knows
}

func (r *Refusal) Error() string { return r.Text }

// signInPath is where visitors say who they are. Browsers send no tokens by themselves: so one is given once, and kept in a cookie that
// only we get, no script can read, and no other site can have sent.
const signInPath = "/signin"

// signInCookie keeps the token. Its prefix has browsers accept it only from us alone, and over HTTPS.
const signInCookie = "__Host-evictrail"

// tokenMost bounds a token: browsers drop cookies of more than 4096 bytes with their names.
const tokenMost = 4000

// DropSignIn takes the token of a visitor out of the cookies of a request.
func DropSignIn(r *http.Request) {
	cookies := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range cookies {
		if c.Name != signInCookie {
			r.AddCookie(c)
		}
	}
}

// SignedIn returns the token of a visitor who has signed in; empty: nobody has.
func SignedIn(r *http.Request) string {
	c, err := r.Cookie(signInCookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// signInBody is what the sign-in page shows.
type signInBody struct {
	Back        string // where to go then
	Problem     string // why the token before was not taken; empty: none was given
	CreateToken string // the command that makes one
}

// authorizeVisitor says who the visitor is, and what they may see.
func (v *visit) authorizeVisitor() error {
	visitor := Visitor{Scope: trail.Everything()}
	if v.site.Admit != nil {
		var err error
		if visitor, err = v.site.Admit(v.Request); err != nil {
			return err
		}
	}
	v.Visitor, v.scope, v.limited = visitor.Name, visitor.Scope, visitor.Scope.Limited()
	return nil
}

// renderRefusal answers who is not let in: with where to sign in or, where that would not help, with why.
func (v *visit) renderRefusal(r *Refusal) error {
	if r.Status == http.StatusUnauthorized {
		return v.askWho(http.StatusUnauthorized, signInBody{Back: ownPath(v.Here)})
	}
	v.Title, v.Content = "Not for you", failure{What: r.Text, Choose: []choice{{"Sign in as somebody else", buildHref(signInPath, "back", v.Here)}}}
	if r.Status >= http.StatusInternalServerError || r.Status == http.StatusTooManyRequests {
		v.Title, v.Content = "Not available now", failure{What: asSentence(r.Text), Advice: "Load the page again in a moment."}
		if r.Retry > 0 {
			seconds := strconv.Itoa(int(r.Retry.Seconds()))
			v.w.Header().Set("Retry-After", seconds)
			v.Content = failure{What: asSentence(r.Text), Advice: "Load the page again after " + seconds + " s."}
		}
	}
	return v.renderPage("error", r.Status)
}

// asSentence writes an error for people.
func asSentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func (v *visit) askWho(status int, b signInBody) error {
	b.CreateToken = v.site.CreateToken
	v.Title, v.Content = "Sign in", b
	return v.renderPage("signin", status)
}

// serveSignIn is GET /signin.
func (s *Site) serveSignIn(w http.ResponseWriter, r *http.Request) {
	s.serveVisit(w, r, func(v *visit) error { return v.askWho(http.StatusOK, signInBody{Back: ownPath(v.param("back"))}) })
}

// signIn is POST /signin: it keeps a token that the cluster knows, and goes back to the page.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 32<<10)
	token, back := strings.TrimSpace(r.PostFormValue("token")), ownPath(r.PostFormValue("back"))
	s.serveVisit(w, r, func(v *visit) error {
		cookie := &http.Cookie{Name: signInCookie, Value: token, Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode}
		switch {
		case token == "":
			return v.askWho(http.StatusBadRequest, signInBody{Back: back, Problem: "No token was given."})
		case len(token) > tokenMost:
			return v.askWho(http.StatusBadRequest, signInBody{Back: back, Problem: "The token is too long for a cookie: use another, such as one of " + s.CreateToken + "."})
		case cookie.Valid() != nil || strings.ContainsAny(token, " \","):
			return v.askWho(http.StatusBadRequest, signInBody{Back: back, Problem: "That is no token: it has spaces, or other letters than tokens have."})
		}
		asked := r.Clone(r.Context())
		asked.Header.Set("Authorization", "Bearer "+token)
		var refusal *Refusal
		switch _, err := s.Admit(asked); {
		case errors.As(err, &refusal):
			return v.askWho(refusal.Status, signInBody{Back: back, Problem: refusal.Text})
		case err != nil:
			return err
		}
		http.SetCookie(w, cookie)
		redirectToPath(w, r, back)
		return nil
	})
}

// signOut is POST /signout: it has the browser forget the token.
func signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: signInCookie, Path: "/", MaxAge: -1, Expires: time.Unix(1, 0), HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode})
	redirectToPath(w, r, signInPath)
}
