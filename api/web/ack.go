package web

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/evictrail/evictrail/metrics"
	"github.com/evictrail/evictrail/trail"
)

// Where pages send acknowledgements, and withdraw them.
const (
	acknowledgePath = "/acknowledgements"
	withdrawPath    = "/acknowledgements/withdraw"
)

// Writes reports whether a request is a form of a page that writes: of it the cookie of signing in counts.
func Writes(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == acknowledgePath || r.URL.Path == withdrawPath)
}

// ackBody is what the template "ack" shows of the VM or the node that a page is about.
type ackBody struct {
	Cluster, Namespace, VMI, Node string
	Held                          *trail.Acknowledgement // that holds now; nil: none does
	Silence                       string                 // address of the form for a silence; empty where no Alertmanager is known
	Writable                      bool                   // forms are shown
	AskAuthor                     bool                   // visitors are not asked who they are
	Holds                         []ackHold              // from which to choose
	Here                          string                 // to go back to
}

// ackHold is a time for which an acknowledgement may hold.
type ackHold struct {
	Hours    string
	Name     string
	Selected bool
}

var ackHolds = []ackHold{{Hours: "1h", Name: "1 hour"}, {Hours: "4h", Name: "4 hours"}, {Hours: "8h", Name: "8 hours", Selected: true}, {Hours: "24h", Name: "1 day"}, {Hours: "72h", Name: "3 days"}, {Hours: "168h", Name: "7 days"}, {Hours: "720h", Name: "30 days"}}

// showAcknowledgement has the page show the acknowledgement of a VM or a node that holds now, and the forms to write one; alerting is what the alerts
// are about. A page about the past does not call it, and one about nothing that can be named shows nothing.
func (v *visit) showAcknowledgement(cluster string, of, alerting trail.Subject) error {
	b := &ackBody{Cluster: cluster, Here: v.Here, Holds: ackHolds, AskAuthor: !v.site.Guarded, Writable: v.site.Acknowledge != nil}
	if b.Node = of.Name; of.Kind != trail.SubjectNode {
		b.Node = ""
		if b.Namespace, b.VMI = of.VM(); b.VMI == "" {
			return nil
		}
	} else if of.Name == "" || v.limited { // acknowledgements of nodes are for who sees all of the cluster
		return nil
	}
	held, err := v.reader.Acknowledged(v.Context(), cluster, []trail.Subject{of})
	if err != nil {
		return err
	}
	if a, is := held[of]; is {
		b.Held = &a
	}
	b.Silence = silenceHref(v.site.Alertmanager, cluster, alerting, b.Held)
	v.Ack = b
	return nil
}

// inRegexp matches names that mean themselves, or little more, in a regular expression.
var inRegexp = regexp.MustCompile(`^[-_.A-Za-z0-9]+$`)

// silenceHref returns the address at an Alertmanager of the form for a silence of the alerts about a VM or a node. Alerts have the label cluster
// only where series of several clusters come to one Prometheus: a silence matches those without it, too. The comment is read since Alertmanager 0.26.
func silenceHref(alertmanager, cluster string, of trail.Subject, held *trail.Acknowledgement) string {
	if alertmanager == "" {
		return ""
	}
	var matchers []string
	add := func(label, op, value string) {
		matchers = append(matchers, label+op+`"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)+`"`)
	}
	if inRegexp.MatchString(cluster) {
		add("cluster", "=~", cluster+"|")
	} else {
		add("cluster", "=", cluster)
	}
	if of.Kind == trail.SubjectNode {
		add(metrics.LabelNode, "=", of.Name)
	} else {
		namespace, name := of.VM()
		add(metrics.LabelNamespace, "=", namespace)
		add(metrics.LabelVMI, "=", name)
	}
	href := strings.TrimSuffix(alertmanager, "/") + "/#/silences/new?filter=" + escapeFragment("{"+strings.Join(matchers, ",")+"}")
	if held != nil {
		href += "&comment=" + escapeFragment(strings.TrimSpace(held.Note+" "+held.Ticket))
	}
	return href
}

// escapeFragment escapes a value of a query in a fragment, where a plus sign is no space.
func escapeFragment(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// newFormHandler makes a handler of what writes. A browser shows who its visitor is by the cookie of signing in, which only our own pages have it
// send (SameSite=Strict, and api/origin.go): here it counts as the token. After it was written the page comes again.
func (s *Site) newFormHandler(write func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 32<<10)
		_ = r.ParseForm() // what cannot be read is missing below
		if token := SignedIn(r); token != "" && r.Header.Get("Authorization") == "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token)
		}
		s.serveVisit(w, r, func(v *visit) error {
			v.Here = ownPath(v.PostFormValue("back"))
			return v.showToVisitor(pageTimeout, s.Turn, func(v *visit) error { return v.writeAndReturn(write) })
		})
	}
}

// writeAndReturn writes, and leads back to the page with the form; a refusal is shown with the way there.
func (v *visit) writeAndReturn(write func(*http.Request) error) error {
	if err := v.readPage(func(*visit) error { return nil }); err != nil { // what surrounds a refusal
		return err
	}
	err := write(v.Request)
	if refusal, is := errors.AsType[*Refusal](err); is && refusal.Status != http.StatusUnauthorized {
		v.Title, v.Content = "Not written", failure{What: asSentence(refusal.Text), Choose: []choice{{"Go back", v.Here}}}
		return v.renderPage("error", refusal.Status)
	}
	if err == nil {
		redirectToPath(v.w, v.Request, v.Here)
	}
	return err
}

// acknowledge reads a form about a VM or a node, and has it written.
func (s *Site) acknowledge(r *http.Request) error {
	holds, err := time.ParseDuration(r.PostFormValue("for"))
	if err != nil {
		return &Refusal{Status: http.StatusBadRequest, Text: "for: expected a time such as 8h"}
	}
	of := trail.VMISubject(r.PostFormValue("namespace"), r.PostFormValue("vm"))
	if node := r.PostFormValue("node"); node != "" {
		of = trail.Subject{Kind: trail.SubjectNode, Name: node}
	}
	a := trail.Acknowledge(of, holds, time.Now().UTC())
	a.Cluster, a.Author, a.Note, a.Ticket = r.PostFormValue("cluster"), r.PostFormValue("author"), r.PostFormValue("note"), r.PostFormValue("ticket")
	return s.Acknowledge(r, a)
}

// withdraw reads a form about an acknowledgement, and has it ended.
func (s *Site) withdraw(r *http.Request) error {
	var id trail.FactID
	if err := id.UnmarshalText([]byte(r.PostFormValue("id"))); err != nil {
		return &Refusal{Status: http.StatusBadRequest, Text: "the ID of an acknowledgement is a UUID"}
	}
	return s.Withdraw(r, id, r.PostFormValue("author"))
}
