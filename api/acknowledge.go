package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/mux"

	"github.com/evictrail/evictrail/api/web"
	"github.com/evictrail/evictrail/trail"
)

// AcknowledgementsPath is where acknowledgements are listed and written.
const AcknowledgementsPath = listsPath + "acknowledgements"

// Acknowledger reads and writes acknowledgements of what one caller may see. It must be safe for concurrent use. Errors: trail.ErrNotFound, and of
// Acknowledge *trail.AmbiguousError.
type Acknowledger interface {
	AcknowledgementWriter
	Acknowledgement(ctx context.Context, id trail.FactID) (trail.Acknowledgement, error)
}

// AcknowledgementWriter writes acknowledgements. It must be safe for concurrent use.
type AcknowledgementWriter interface {
	Acknowledge(ctx context.Context, a trail.Acknowledgement) (trail.Acknowledgement, error)
	Withdraw(ctx context.Context, id trail.FactID, by string) (trail.Acknowledgement, error)
}

// AcknowledgementBody is an acknowledgement as it is sent.
type AcknowledgementBody struct {
	Cluster   string    `json:"cluster,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	VM        string    `json:"vm,omitempty"`
	Node      string    `json:"node,omitempty"`
	Author    string    `json:"author,omitempty"`
	Note      string    `json:"note,omitempty"`
	Ticket    string    `json:"ticket,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// NewAcknowledgementBody returns an acknowledgement as it is sent.
func NewAcknowledgementBody(a trail.Acknowledgement) AcknowledgementBody {
	return AcknowledgementBody{a.Cluster, a.Namespace, a.VMI, a.Node, a.Author, a.Note, a.Ticket, a.ExpiresAt}
}

// acknowledgement returns what was sent, as of when it came.
func (b AcknowledgementBody) acknowledgement(now time.Time) trail.Acknowledgement {
	a := trail.Acknowledgement{
		Cluster: b.Cluster, Namespace: b.Namespace, VMI: b.VM, Node: b.Node, Author: b.Author, Note: b.Note, Ticket: b.Ticket, CreatedAt: now, ExpiresAt: b.ExpiresAt.UTC(),
	}
	if b.ExpiresAt.IsZero() {
		a.ExpiresAt = now.Add(trail.AckDefault)
	}
	return a
}

// acknowledging writes acknowledgements for callers who may.
type acknowledging struct {
	acknowledgers func(trail.Scope) Acknowledger // nil: nothing is written
	gate          *Gate
	forward       AcknowledgementWriter // where they are written that others write, who say who may and in whose name; nil: here
}

// errNotWritten says why nothing is written.
var errNotWritten = newProblem(http.StatusForbidden, "this evictrail takes no acknowledgements: start it with --auth=kubernetes, so that the cluster says who writes, or with --auth=none on a closed network; or write to its database: `evictrail ack --database-url`")

// acknowledge stores what a caller sent, in their name where the cluster knows it.
func (s acknowledging) acknowledge(ctx context.Context, who caller, a trail.Acknowledgement) (trail.Acknowledgement, error) {
	switch {
	case s.forward != nil:
		return s.forward.Acknowledge(ctx, a)
	case s.acknowledgers == nil:
		return a, errNotWritten
	}
	if s.gate != nil {
		a.Author = who.user
	}
	a, err := a.Clean(time.Now())
	if err != nil {
		return a, newProblem(http.StatusBadRequest, err.Error())
	}
	if err := s.gate.mayAcknowledge(ctx, who, a.Subject()); err != nil {
		return a, err
	}
	return s.acknowledgers(who.scope).Acknowledge(ctx, a)
}

// withdraw ends an acknowledgement, in the name of the caller where the cluster knows it.
func (s acknowledging) withdraw(ctx context.Context, who caller, id trail.FactID, by string) (trail.Acknowledgement, error) {
	switch {
	case s.forward != nil:
		return s.forward.Withdraw(ctx, id, by)
	case s.acknowledgers == nil:
		return trail.Acknowledgement{}, errNotWritten
	}
	writes := s.acknowledgers(who.scope)
	a, err := writes.Acknowledgement(ctx, id)
	if err != nil {
		return a, err
	}
	if err := s.gate.mayAcknowledge(ctx, who, a.Subject()); err != nil {
		return a, err
	}
	if s.gate != nil {
		by = who.user
	}
	if by, err = trail.CleanAuthor(by); err != nil {
		return a, newProblem(http.StatusBadRequest, err.Error())
	}
	return writes.Withdraw(ctx, id, by)
}

// newHandler answers a request that writes, within the bounds of one that reads.
func (s acknowledging) newHandler(reads *reads, status int, write func(context.Context, caller, *http.Request) (trail.Acknowledgement, error)) http.Handler {
	return bodyFirst(s.gate.requireRight(rightToSeeVMs, func(w http.ResponseWriter, r *http.Request, who caller) {
		ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
		defer cancel()
		var written trail.Acknowledgement
		_, sent, err := reads.inTurn(ctx, reads.crowd.awaitTurn, func() (_ reply, err error) {
			written, err = write(ctx, who, r)
			return reply{}, err
		})
		if err != nil {
			reads.problemOf(err, readTimeout).write(w)
			return
		}
		defer sent()
		w.Header().Set("Cache-Control", uncached)
		writeJSON(w, status, mediaTypes["json"], written)
	}))
}

// buildRoutes returns the routes that write; the list is that of a view.
func (s acknowledging) buildRoutes(reads *reads) []route {
	post := func(ctx context.Context, who caller, r *http.Request) (trail.Acknowledgement, error) {
		var b AcknowledgementBody
		d := json.NewDecoder(r.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&b); err != nil || d.More() {
			return trail.Acknowledgement{}, newProblem(http.StatusBadRequest, "the body cannot be read: expected one JSON object with cluster, namespace, vm, node, author, note, ticket and expires_at (RFC 3339)")
		}
		return s.acknowledge(ctx, who, b.acknowledgement(time.Now().UTC()))
	}
	remove := func(ctx context.Context, who caller, r *http.Request) (trail.Acknowledgement, error) {
		var id trail.FactID
		if err := id.UnmarshalText([]byte(mux.Vars(r)["id"])); err != nil {
			return trail.Acknowledgement{}, newProblem(http.StatusBadRequest, "the ID of an acknowledgement is a UUID")
		}
		var by string
		if err := readParams(withdrawParams(), r.URL.RawQuery, time.Now(), &by); err != nil {
			return trail.Acknowledgement{}, err
		}
		return s.withdraw(ctx, who, id, by)
	}
	row := jsonContent(newRefSchema("Acknowledgement"), nil)
	about := "Needs --auth. With --auth=kubernetes the caller needs the right to patch the VM (virtualmachineinstances, kubevirt.io) or the node, and is the author, whatever is sent. "
	return []route{
		{
			method: http.MethodPost, path: AcknowledgementsPath, tag: tagAcknowledge, id: "acknowledge", short: "Acknowledge the problem of a VM or a node",
			about:    about + fmt.Sprintf("It holds for %d h where nothing else is said, for %d days at most, and replaces the one that the VM or the node has.", int(trail.AckDefault.Hours()), int(trail.AckMost.Hours()/24)),
			body:     &requestBody{"Whose problem it is, a note or a ticket, and until when.", true, fields{{mediaTypes["json"], content{acknowledgementBodySchema(), exampleAcknowledgement}}}},
			answers:  []answer{{http.StatusCreated, "The acknowledgement.", []string{headerCached, headerVary}, row}},
			problems: problemsWith(http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge),
			handler:  s.newHandler(reads, http.StatusCreated, post),
		},
		{
			method: http.MethodDelete, path: AcknowledgementsPath + "/{id}", tag: tagAcknowledge, id: "withdrawAcknowledgement", short: "Withdraw an acknowledgement",
			about: about + "The row stays in the list, with its end.", params: append([]parameter{pathParam("id", "Its acknowledgement_id.", "0b6b1f0e-93a1-4c8e-9a57-6f4d3f6f2a10")}, describeParams(withdrawParams())...),
			answers:  []answer{{http.StatusOK, "The acknowledgement, with its end.", []string{headerCached, headerVary}, row}},
			problems: problemsWith(http.StatusBadRequest, http.StatusNotFound, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge),
			handler:  s.newHandler(reads, http.StatusOK, remove),
		},
	}
}

// withdrawParams are the parameters of who withdraws.
func withdrawParams() []param[string] {
	return []param[string]{{
		name: "author", about: "Who withdraws it. With --auth=kubernetes that is the caller, whatever is sent.", schema: newTextSchema(), example: "anna",
		read: readText("author", func(by *string) *string { return by }), write: func(by string) string { return by },
	}}
}

// WithdrawURL returns the path, relative to that of evictrail, and the query string of an acknowledgement that somebody withdraws.
func WithdrawURL(id trail.FactID, by string) *url.URL {
	return &url.URL{Path: AcknowledgementsPath + "/" + id.String(), RawQuery: writeParams(withdrawParams(), by).Encode()}
}

var exampleAcknowledgement = AcknowledgementBody{Namespace: "shop", VM: "db-1", Note: "disk array is being fixed", Ticket: "OPS-17"}

func acknowledgementBodySchema() schema {
	return newObjectSchema(nil, fields{
		{"cluster", withDescription(newTextSchema(), "The cluster, where several are recorded.")},
		{"namespace", withDescription(newTextSchema(), "Namespace of the VM.")},
		{"vm", withDescription(newTextSchema(), "Name of the VM; missing where it is about a node.")},
		{"node", withDescription(newTextSchema(), "Name of the node; missing where it is about a VM.")},
		{"author", withDescription(newTextSchema(), "Who acknowledges. With --auth=kubernetes that is the caller, whatever is sent; with --auth=none it has to be given.")},
		{"note", withDescription(newTextSchema(), "What is known, in plain text of at most 500 characters. It may be missing where there is a ticket.")},
		{"ticket", withDescription(newTextSchema(), "The ticket or its address, at most 300 characters.")},
		{"expires_at", newTimeSchema("Until when it holds. By default 8 h from now, at most 30 days.")},
	})
}

// acknowledgementSchema describes a trail.Acknowledgement.
func acknowledgementSchema() schema {
	return withDescription(newObjectSchema([]string{"acknowledgement_id", "cluster", "author", "created_at", "expires_at"}, fields{
		{"acknowledgement_id", schema{Type: types{"string"}, Format: "uuid"}}, {"cluster", newTextSchema()},
		{"namespace", newTextSchema()}, {"vmi", withDescription(newTextSchema(), "Missing where it is about a node.")},
		{"node", withDescription(newTextSchema(), "Missing where it is about a VM.")},
		{"author", newTextSchema()}, {"note", newTextSchema()}, {"ticket", newTextSchema()},
		{"created_at", newTimeSchema("")}, {"expires_at", newTimeSchema("Until when it holds at most.")},
		{"ended_at", newTimeSchema("Missing while it holds.")}, {"ended_by", newTextSchema()},
	}), "An acknowledgement as it is stored; see the list acknowledgements.")
}

// mayAcknowledge returns a *Problem where a caller may not acknowledge the problem of a VM or a node, or nobody can say whether they may.
func (g *Gate) mayAcknowledge(ctx context.Context, who caller, of trail.Subject) error {
	if g == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := g.budgets.waitForRight(ctx, true)
	may := false
	if err == nil {
		may, err = g.Reviewer.MayAcknowledge(ctx, who.identity, of)
	}
	switch {
	case err != nil:
		if g.Failed != nil {
			g.Failed(fmt.Errorf("ask what a user may acknowledge: %w", err))
		}
		return g.denyUnanswered()
	case may:
		return nil
	}
	return g.denyRequest(DeniedNoRight, http.StatusForbidden, who.user+" may not patch "+describeRight(of)+", which acknowledging its problem needs: ask for that right")
}

// describeRight says which right acknowledging needs.
func describeRight(of trail.Subject) string {
	if of.Kind == trail.SubjectNode {
		return "node " + of.Name
	}
	namespace, name := of.VM()
	return "virtualmachineinstance " + name + " (kubevirt.io) in namespace " + namespace
}

// serveVisitors has the pages write, too; without acknowledgers they do not.
func (s acknowledging) serveVisitors(site *web.Site) {
	if s.acknowledgers == nil && s.forward == nil {
		return
	}
	site.Acknowledge = func(r *http.Request, a trail.Acknowledgement) error {
		who, err := s.gate.authorizeRequest(r, rightToSeeVMs)
		if err == nil {
			_, err = s.acknowledge(r.Context(), who, a)
		}
		return refuseVisitor(err)
	}
	site.Withdraw = func(r *http.Request, id trail.FactID, by string) error {
		who, err := s.gate.authorizeRequest(r, rightToSeeVMs)
		if err == nil {
			_, err = s.withdraw(r.Context(), who, id, by)
		}
		return refuseVisitor(err)
	}
}

// refuseVisitor returns a problem as pages show it; other errors as they are.
func refuseVisitor(err error) error {
	var p *Problem
	if errors.As(err, &p) {
		return p.ToRefusal()
	}
	return err
}
