package web

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/alerts/backtest"
	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/forecast"
	"github.com/evictrail/evictrail/trail/whatif"
)

// FleetReader is where pages about several clusters get what they show: the database of one evictrail, or several evictrails. It is safe for
// concurrent use. Errors may be a *Refusal.
type FleetReader interface {
	Summaries(ctx context.Context) ([]trail.ClusterSummary, error)
	// Recorders returns the state of the recorder of each cluster, or of the named one. With a non-zero from, each has the gaps that overlap
	// the period from..to; a zero to is no bound. With an error the states are those that are known without the database.
	Recorders(ctx context.Context, cluster string, from, to time.Time) ([]trail.RecorderStatus, error)
	// Fleet returns how it stands with each cluster: with worst the worst first, each with its worst in a sentence.
	Fleet(ctx context.Context, worst bool) ([]trail.FleetLine, error)
	Compare(ctx context.Context, q trail.CompareQuery) ([]trail.ClusterComparison, error)
	// Limits reports, by cluster, whether KubeVirt's limits fit the migrations of the last week; nothing to who may not see all of a cluster.
	Limits(ctx context.Context, cluster string) ([]forecast.Limits, error)
	Find(ctx context.Context, cluster, text string) (found []trail.Found, total int, err error)
	// Weekly reports, by cluster, what happened week by week to the VMs that the visitor may see.
	Weekly(ctx context.Context, q trail.WeeklyQuery) ([]trail.Weekly, error)
	ListText(ctx context.Context, v trail.View, q trail.Query) (trail.Table, error)
	Nodes(ctx context.Context, q trail.NodeQuery) ([]trail.NodeSummary, error)
}

// Reader is where all pages get what they show. It is safe for concurrent use. Errors: trail.ErrNotFound, *trail.AmbiguousError.
type Reader interface {
	FleetReader
	// Overview returns how it stands with a cluster now or, where at is not zero, stood at a moment of the past.
	Overview(ctx context.Context, cluster string, at time.Time, back, step time.Duration) (trail.Overview, error)
	Ask(ctx context.Context, q trail.Question) (*trail.Cluster, error)
	LastSeen(ctx context.Context, cluster string, now time.Time) (time.Time, error)
	Loop(ctx context.Context, cluster string, id trail.FactID) (string, trail.Loop, error)
	ListJSON(ctx context.Context, v trail.View, q trail.Query) (trail.Page[json.RawMessage], error)
	Recorded(ctx context.Context, cluster string, of trail.Subject, from, to time.Time, most int) ([]trail.Recorded, error)
	// Acknowledged returns the acknowledgements that hold now of some VMs and nodes of a cluster.
	Acknowledged(ctx context.Context, cluster string, of []trail.Subject) (map[trail.Subject]trail.Acknowledgement, error)
	WhatIf(ctx context.Context, q whatif.Question) (whatif.Answer, error)
	Backtest(ctx context.Context, q backtest.Question) (backtest.Answer, error)
	DrainForecast(ctx context.Context, q trail.Question) (forecast.Drain, error)
}

// Readers has a page made with a Reader of what a visitor who sees so much may read: all of it with that one. Where that
// Reader cannot answer, and one of another server may, the page is made once more with that. The error is that of the last.
type Readers func(ctx context.Context, of trail.Scope, page func(context.Context, Reader) error) error

// ForAll returns Readers with the same Reader for every visitor, for a server that has one user.
func ForAll(r Reader) Readers {
	return func(ctx context.Context, _ trail.Scope, page func(context.Context, Reader) error) error {
		return page(ctx, r)
	}
}

// Site serves the pages.
type Site struct {
	// Readers is where pages get what they show. Nil: Fleet is asked, and there are no pages of one cluster.
	Readers Readers
	// Fleet is where the pages of several evictrails get what they show.
	Fleet FleetReader
	// Missing returns the evictrails whose part is missing in what was read for a request; nil: there is only one.
	Missing func(context.Context) []trail.MissingSource
	// Admit says who a visitor is, and what they may see; an error may be a *Refusal. Nil: everybody sees everything.
	Admit func(*http.Request) (Visitor, error)
	// Guarded reports whether visitors are asked who they are: then they can sign in and out.
	Guarded bool
	// CreateToken is the command that makes a token to sign in with; empty where visitors are not asked who they are.
	CreateToken string
	// Links says where else pages lead.
	Links Links
	// Turn waits until a page may ask its Reader; nil: at once.
	Turn Turn
	// LongTurn is Turn for a page that may take long; nil: at once.
	LongTurn Turn
	// Acknowledge and Withdraw write for who sends a request; nil: nothing is written. Errors may be a *Refusal.
	Acknowledge func(*http.Request, trail.Acknowledgement) error
	Withdraw    func(r *http.Request, id trail.FactID, by string) error
	// Alertmanager is the address of one in which the alerts of a VM or a node can be silenced; empty: there is none.
	Alertmanager string
	// ParseList reads what a list is asked for from a query string, and ParseNodes the same for nodes, as the API does: its errors are for visitors.
	ParseList  func(v trail.View, query string, now time.Time) (trail.Query, error)
	ParseNodes func(query string, now time.Time) (trail.NodeQuery, error)
	// ParseWeekly reads what a report of weeks is asked for, in the same manner.
	ParseWeekly func(query string, now time.Time) (trail.WeeklyQuery, error)
	// ParseAdvice reads what advice is asked for, in the same manner.
	ParseAdvice func(query string, now time.Time) (whatif.AdviceQuestion, error)
	// ParseBacktest reads which alerts are to be tried on history, in the same manner.
	ParseBacktest func(query string, now time.Time) (backtest.Question, error)
	// Failed is called with an error that a visitor cannot fix; may be nil.
	Failed func(path string, err error)
}

// Turn waits until it is a page's turn. Leave is to be called when the page was made, with its size in bytes, and sent when it was sent, or
// cut; where leave has an error the page is not to be sent. Errors may be a *Refusal.
type Turn func(context.Context) (leave func(size int) (sent func(), err error), err error)

//go:embed templates assets
var files embed.FS

// Route adds the pages to a router.
func (s *Site) Route(r *mux.Router) {
	assets, _ := fs.Sub(files, "assets")
	get := func(path string, show func(*visit) error) {
		r.Path(path).Methods(http.MethodGet, http.MethodHead).HandlerFunc(s.newPageHandler(show))
	}
	get("/", frontPage)
	if s.Readers != nil {
		get("/vms/{namespace}/{name}", vmPage)
		get("/nodes/{node}", nodePage)
		get("/loops/{id}", loopPage)
		get("/facts", factsPage)
		r.Path("/whatif").Methods(http.MethodGet, http.MethodHead).HandlerFunc(s.newPageHandlerWithin(whatif.Within, s.LongTurn, whatIfPage))
		r.Path(advicePath).Methods(http.MethodGet, http.MethodHead).HandlerFunc(s.newPageHandlerWithin(whatif.Within, s.LongTurn, advicePage))
		r.Path(backtestPath).Methods(http.MethodGet, http.MethodHead).
			HandlerFunc(s.newPageHandlerWithin(whatif.Within, s.LongTurn, backtestPage))
	}
	get("/search", searchPage)
	get(comparePath, comparePage)
	get(limitsPath, limitsPage)
	get(weeklyPath, weeklyPage)
	for _, l := range lists {
		get(l.path, l.show)
	}
	get(nodesPath, nodesPage)
	get(recorderPath, recorderPage)
	if s.Guarded {
		r.Path(signInPath).Methods(http.MethodGet, http.MethodHead).HandlerFunc(s.serveSignIn)
		r.Path(signInPath).Methods(http.MethodPost).HandlerFunc(s.signIn)
		r.Path("/signout").Methods(http.MethodPost).HandlerFunc(signOut)
	}
	if s.Acknowledge != nil {
		r.Path(acknowledgePath).Methods(http.MethodPost).HandlerFunc(s.newFormHandler(s.acknowledge))
		r.Path(withdrawPath).Methods(http.MethodPost).HandlerFunc(s.newFormHandler(s.withdraw))
	}
	r.Path("/theme").Methods(http.MethodPost).HandlerFunc(chooseTheme)
	r.PathPrefix("/assets/").Methods(http.MethodGet, http.MethodHead).Handler(http.StripPrefix("/assets/", cacheAssets(http.FileServerFS(assets))))
}

// visit is one request for a page: what it asks with, and what it is answered with.
type visit struct {
	*http.Request
	site    *Site
	scope   trail.Scope // what the visitor may see
	fleet   FleetReader // of that
	reader  Reader      // the same, for the pages of one cluster; nil: there are none
	limited bool        // the visitor sees some namespaces alone
	w       http.ResponseWriter
	status  int          // of the page that was made; 0: none was
	body    bytes.Buffer // of it
	sent    func()       // to be called when it was sent; nil: nothing is
	asked   time.Time    // when the page was asked for, or of a standby for when it speaks

	recorders []trail.RecorderStatus // of all clusters, ordered by name
	frame
}

// frame is what surrounds the content of every page.
type frame struct {
	Title      string
	Cluster    string                 // that the page is about; empty: of all
	Clusters   []trail.ClusterSummary // that are recorded
	Banner     *banner                // nil where no recorder is known
	Missing    []trail.MissingSource  // whose part is missing in what the page shows
	Unobserved string                 // the gaps that overlap the period of the page, in a sentence; empty without any
	Visitor    string                 // who signed in; empty: nobody has to
	Theme      string                 // dark, light, or empty: as the browser prefers
	Here       string                 // path and query of this page
	Address    string                 // the same, behind the host; for paper
	Zone       zone                   // in which times are shown
	Kept       []hidden               // parameters of the page that the form of the zone keeps
	Moment     *moment                // of which the page is; nil: it cannot be of another one than now
	Compared   *comparison            // of the moment of the page with another; nil: it is not of the past
	Live       string                 // where changes are announced; empty: the page is about the past
	AsOf       time.Time              // the moment for which it speaks; zero: it speaks for none
	Query      string                 // what was searched for
	Ack        *ackBody               // of the VM or the node that the page is about; nil: nothing is shown of it
	Content    any                    // of the page's own template
	links      Links                  // to other programs
}

// Certain reports whether an empty list of the page may be read as "there is none".
func (f frame) Certain() bool { return f.Banner != nil && f.Banner.Certain }

// newPageHandler makes a handler of what shows a page. Answers are whole or an error page, never half of one.
func (s *Site) newPageHandler(show func(*visit) error) http.HandlerFunc {
	return s.newPageHandlerWithin(pageTimeout, s.Turn, show)
}

// newPageHandlerWithin is page with bounds of its own.
func (s *Site) newPageHandlerWithin(timeout time.Duration, turn Turn, show func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.serveVisit(w, r, func(v *visit) error {
			return v.showToVisitor(timeout, turn, func(v *visit) error { return v.readPage(show) })
		})
	}
}

// showToVisitor shows the page to who may see it, when it is its turn.
func (v *visit) showToVisitor(timeout time.Duration, turn Turn, show func(*visit) error) error {
	err := v.authorizeVisitor()
	if err == nil {
		err = v.inTurn(timeout, turn, show)
	}
	if refusal, is := errors.AsType[*Refusal](err); is {
		return v.renderRefusal(refusal)
	}
	return err
}

// serveVisit answers with what shows a page, or else with an error page. Nobody was asked yet who they are.
func (s *Site) serveVisit(w http.ResponseWriter, r *http.Request, show func(*visit) error) {
	v := &visit{Request: r, site: s, w: w, asked: time.Now().UTC(), frame: frame{links: s.Links, Theme: Theme(r), Here: r.URL.RequestURI(), Address: r.Host + r.URL.RequestURI(), Cluster: r.URL.Query().Get("cluster")}}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Referrer-Policy", "same-origin")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Add("Vary", "Authorization, Cookie")
	var err error
	if v.Zone, err = parseZone(v.param(zoneParam)); err == nil {
		err = show(v)
	}
	if err != nil {
		v.renderFailure(err)
	}
	v.sendPage()
}

// sendPage sends the page that was made, if one was: its turn is over by then, so that who reads slowly holds up nobody.
func (v *visit) sendPage() {
	if v.sent != nil {
		defer v.sent()
	}
	if v.status == 0 {
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(v.status)
	_, _ = v.body.WriteTo(v.w)
}

// pageTimeout bounds what a page may wait for.
const pageTimeout = 10 * time.Second

// inTurn shows the page when it is its turn.
func (v *visit) inTurn(timeout time.Duration, turn Turn, show func(*visit) error) (err error) {
	ctx, cancel := context.WithTimeout(v.Context(), timeout)
	defer cancel()
	v.Request = v.WithContext(ctx)
	if turn != nil {
		leave, err := turn(ctx)
		if err != nil {
			return err
		}
		defer func() {
			var unsent error
			if v.sent, unsent = leave(v.body.Len()); unsent != nil {
				err = unsent
			}
		}()
	}
	return show(v)
}

// readPage makes a page of what a Reader answers, of another one from the beginning where the first cannot.
func (v *visit) readPage(show func(*visit) error) error {
	request, blank, asked := v.Request, v.frame, v.asked
	defer func() { v.Request = request }()
	showWith := func(ctx context.Context, fleet FleetReader, reader Reader) error {
		v.Request, v.frame, v.asked, v.fleet, v.reader = request.WithContext(ctx), blank, asked, fleet, reader
		if err := v.loadSummaries(); err != nil {
			return err
		}
		return show(v)
	}
	if v.site.Readers == nil {
		return showWith(v.Context(), v.site.Fleet, nil)
	}
	return v.site.Readers(v.Context(), v.scope, func(ctx context.Context, reader Reader) error {
		return showWith(ctx, reader, reader)
	})
}

// Unknown answers that there is no such page.
func (s *Site) Unknown(w http.ResponseWriter, r *http.Request) {
	s.Refuse(w, r, fmt.Errorf("page %s: %w", r.URL.Path, trail.ErrNotFound))
}

// Refuse answers with the page of an error, such as trail.ErrNotFound, a *trail.AmbiguousError or a *Refusal.
func (s *Site) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.newPageHandler(func(*visit) error { return err })(w, r)
}

// policy lets a page load nothing but our own style, script and pictures.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// loadSummaries reads what every page shows: which clusters there are, and the state of their recorders.
func (v *visit) loadSummaries() (err error) {
	if v.recorders, err = v.fleet.Recorders(v.Context(), "", time.Time{}, time.Time{}); err != nil {
		return err
	}
	for _, s := range v.recorders {
		if s.Standby.Answered() && s.At.Before(v.asked) {
			v.asked = s.At
		}
	}
	v.Clusters, err = v.fleet.Summaries(v.Context())
	return err
}

// param returns a parameter of the query, without space around it.
func (v *visit) param(name string) string { return strings.TrimSpace(v.URL.Query().Get(name)) }

// renderPage makes the page of a template, in place of what was made before.
func (v *visit) renderPage(name string, status int) error {
	v.Kept = v.hiddenWithout(zoneParam)
	v.nameState()
	return v.executeTemplate(name, "layout", status)
}

// executeTemplate executes a template of a page, in place of what was made before.
func (v *visit) executeTemplate(page, name string, status int) error {
	v.body.Reset()
	if err := pages[page].ExecuteTemplate(&v.body, name, v.frame); err != nil {
		v.body.Reset()
		return err
	}
	if page := v.Zone.translatePage(v.body.Bytes()); v.Zone.Name != "" {
		v.body = *bytes.NewBuffer(page)
	}
	v.status = status
	return nil
}

// failure is the content of an error page.
type failure struct {
	What   string
	Advice string
	Choose []choice // the clusters to choose from
}

type choice struct{ Name, Href string }

// errBadQuestion is wrapped by an error that says what is wrong with the parameters of a page.
var errBadQuestion = errors.New("invalid link")

// renderFailure answers with an error page that says what to do.
func (v *visit) renderFailure(err error) {
	var ambiguous *trail.AmbiguousError
	var f failure
	status := http.StatusServiceUnavailable
	switch {
	case errors.As(err, &ambiguous):
		status, v.Title, f.What = http.StatusMultipleChoices, "Choose a cluster", ambiguous.Name+" is known in several clusters. Which one do you mean?"
		for _, c := range ambiguous.Clusters {
			f.Choose = append(f.Choose, choice{c, v.linkWith("cluster", c)})
		}
	case errors.Is(err, trail.ErrNotFound):
		status, v.Title, f.What = http.StatusNotFound, "Nothing found", "No record of "+v.nameSubject()+"."
		f.Advice = "Search for a part of its name. Nothing is recorded of what happened before evictrail watched the cluster, nor of what retention has removed."
	case errors.Is(err, errBadQuestion):
		status, v.Title, f.What = http.StatusBadRequest, "Invalid link", trail.UpperFirst(err.Error())+"."
	default:
		v.Title, f.What = "Not available now", "The database does not answer this at the moment."
		f.Advice = "Load the page again in a moment. If it stays so, /readyz says what is not working, and the log of evictrail why."
		if v.site.Failed != nil && v.Context().Err() == nil {
			v.site.Failed(v.URL.Path, err)
		}
	}
	v.Content, v.Live, v.AsOf, v.Ack = f, "", time.Time{}, nil
	if v.renderPage("error", status) != nil {
		http.Error(v.w, f.What, http.StatusInternalServerError)
	}
}

// nameSubject names what the page is about, as its address does.
func (v *visit) nameSubject() string {
	vars, subject := mux.Vars(v.Request), "page "+v.URL.Path
	switch {
	case vars["namespace"] != "":
		subject = "VM " + vars["namespace"] + "/" + vars["name"]
	case vars["node"] != "":
		subject = "node " + vars["node"]
	case vars["id"] != "":
		subject = "loop " + vars["id"]
	case v.param("vm") != "":
		subject = "VM " + v.param("vm")
	case v.param("node") != "":
		subject = "node " + v.param("node")
	case slices.Contains([]string{"/", "/whatif", limitsPath, weeklyPath, advicePath, backtestPath}, v.URL.Path):
		return "cluster " + v.Cluster
	}
	if v.Cluster != "" {
		subject += " in cluster " + v.Cluster
	}
	return subject
}

// linkWith returns the address of this page with parameters set to other values; an empty one is left out.
func (v *visit) linkWith(pairs ...string) string {
	q := v.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	u := url.URL{Path: v.URL.Path, RawQuery: q.Encode()}
	return u.String()
}

// cacheAssets lets browsers keep assets for an hour.
func cacheAssets(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// pages are the templates, each with the layout around it.
var pages = func() map[string]*template.Template {
	layout := template.Must(template.New("layout").Funcs(words).ParseFS(files, "templates/layout.html", "templates/chart.html", "templates/ack.html", "templates/links.html"))
	out := map[string]*template.Template{}
	for _, name := range []string{
		"front", "vm", "node", "loop", "facts", "search", "whatif", "advice", "backtest", "compare", "limits", "weekly", "list",
		"signin", "error",
	} {
		out[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return out
}()
