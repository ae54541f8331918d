package trail

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Acknowledgement says that somebody knows the problem of a VM or a node, and until when they ask others to leave it to them. It is a
// remark: facts, derived rows, metrics and alerts stay as they are. Its JSON is a row of ViewAcknowledgements.
type Acknowledgement struct {
	ID        FactID    `json:"acknowledgement_id"`
	Cluster   string    `json:"cluster"`
	Namespace string    `json:"namespace,omitempty"` // with VMI; empty: it is about a node
	VMI       string    `json:"vmi,omitempty"`
	Node      string    `json:"node,omitempty"` // empty: it is about a VM
	Author    string    `json:"author"`
	Note      string    `json:"note,omitempty"`
	Ticket    string    `json:"ticket,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"` // zero: it holds
	EndedBy   string    `json:"ended_by,omitempty"`
}

// The bounds of an acknowledgement.
const (
	AckDefault = 8 * time.Hour       // for which it holds where nobody says for how long
	AckMost    = 30 * 24 * time.Hour // for which it may hold

	noteMost   = 500 // characters
	ticketMost = 300
	authorMost = 256
)

// Acknowledge returns an acknowledgement of the problem of a VM or a node that holds for a time.
func Acknowledge(of Subject, holds time.Duration, now time.Time) Acknowledgement {
	a := Acknowledgement{CreatedAt: now, ExpiresAt: now.Add(cmp.Or(holds, AckDefault))}
	if of.Kind == SubjectNode {
		a.Node = of.Name
	} else {
		a.Namespace, a.VMI = of.VM()
	}
	return a
}

// Subject returns the VM or the node that it is about.
func (a Acknowledgement) Subject() Subject {
	if a.Node != "" {
		return Subject{SubjectNode, a.Node}
	}
	return VMISubject(a.Namespace, a.VMI)
}

// Problem returns whose problem a loop is: the VM that it is about or, where it is about no one VM, its node. The name is empty where it is about neither.
func (l Loop) Problem() Subject {
	if l.VMI != "" {
		return VMISubject(l.Namespace, l.VMI)
	}
	return Subject{SubjectNode, l.Node}
}

// Name returns the name of what it is about: NAMESPACE/VM or node NODE.
func (a Acknowledgement) Name() string {
	if a.Node != "" {
		return "node " + a.Node
	}
	return a.Namespace + "/" + a.VMI
}

// Clean returns the acknowledgement with the space in its texts reduced. The error says what makes it unusable at a time.
func (a Acknowledgement) Clean(now time.Time) (Acknowledgement, error) {
	var authorErr, noteErr, ticketErr error
	a.Author, authorErr = CleanAuthor(a.Author)
	a.Note, noteErr = cleanText("note", a.Note, noteMost)
	a.Ticket, ticketErr = cleanText("ticket", a.Ticket, ticketMost)
	if err := cmp.Or(authorErr, noteErr, ticketErr); err != nil {
		return a, err
	}
	switch about := a.Namespace != "" && a.VMI != ""; {
	case about == (a.Node != "") || (a.Namespace != "") != (a.VMI != ""):
		return a, errors.New("expected a namespace and a VM, or a node")
	case a.Note == "" && a.Ticket == "":
		return a, errors.New("note: say what is known of the problem, or name a ticket")
	case !a.ExpiresAt.After(now):
		return a, errors.New("expires_at: expected a time in the future")
	case a.ExpiresAt.Sub(now) > AckMost:
		return a, fmt.Errorf("expires_at: expected at most %d days from now", int(AckMost.Hours()/24))
	}
	return a, nil
}

// CleanAuthor returns the name of who acknowledges or withdraws, with the space in it reduced.
func CleanAuthor(name string) (string, error) {
	name, err := cleanText("author", name, authorMost)
	if err == nil && name == "" {
		err = errors.New("author: say who you are")
	}
	return name, err
}

// cleanText returns a text of one line, with the space in it reduced. The error says what makes it unusable.
func cleanText(name, text string, most int) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, isHiddenRune):
		return text, fmt.Errorf("%s: expected plain text without control characters", name)
	case utf8.RuneCountInString(text) > most:
		return text, fmt.Errorf("%s: expected at most %d characters", name, most)
	}
	return text, nil
}

// isHiddenRune reports whether a character shows nothing by itself, or turns the direction in which others are read.
func isHiddenRune(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// TicketURL returns the ticket where that is the address of a page; empty where it is a name, or there is none.
func (a Acknowledgement) TicketURL() string {
	u, err := url.Parse(a.Ticket)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return a.Ticket
}

// Sentence says who acknowledged what, until when, and why.
func (a Acknowledgement) Sentence() string {
	text := fmt.Sprintf("%s is acknowledged by %s until %s", a.Name(), a.Author, FormatClock(a.ExpiresAt))
	if !a.EndedAt.IsZero() {
		text = fmt.Sprintf("%s was acknowledged by %s until %s", a.Name(), a.Author, FormatClock(a.EndedAt))
	}
	if text += a.Remark(); a.Ticket != "" {
		text += " Ticket " + a.Ticket
	}
	return text
}

// Remark returns the note as the end of a sentence that says until when it holds: after a colon, with a stop; the stop alone where there is none.
func (a Acknowledgement) Remark() string {
	switch {
	case a.Note == "":
		return "."
	case strings.ContainsAny(a.Note[len(a.Note)-1:], ".?!"):
		return ": " + a.Note
	}
	return ": " + a.Note + "."
}
