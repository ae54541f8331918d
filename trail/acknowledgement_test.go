package trail_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestAcknowledgementIsCleaned reads what people write: space is reduced, and what cannot be shown as one line of plain text is refused.
func TestAcknowledgementIsCleaned(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	base := trail.Acknowledge(trail.VMISubject("shop", "db-1"), 0, now)
	base.Author, base.Note, base.Ticket = " anna ", "disk array\n\tis being fixed", "OPS-17"
	a, err := base.Clean(now)
	require.NoError(t, err)
	require.Equal(t, "shop/db-1 is acknowledged by anna until 2026-11-21 18:00:00Z: disk array is being fixed. Ticket OPS-17", a.Sentence())
	a.EndedAt, a.Note, a.Ticket = now.Add(time.Hour), "Is it fixed?", ""
	require.Equal(t, "shop/db-1 was acknowledged by anna until 2026-11-21 11:00:00Z: Is it fixed?", a.Sentence())

	for text, change := range map[string]func(*trail.Acknowledgement){
		"author: say who you are":                  func(a *trail.Acknowledgement) { a.Author = " " },
		"note: expected at most 500 characters":    func(a *trail.Acknowledgement) { a.Note = strings.Repeat("ä", 501) },
		"ticket: expected at most 300 characters":  func(a *trail.Acknowledgement) { a.Ticket = strings.Repeat("x", 301) },
		"note: expected plain text":                func(a *trail.Acknowledgement) { a.Note = "a\u202eb" },
		"ticket: expected plain text":              func(a *trail.Acknowledgement) { a.Ticket = "a\x00b" },
		"say what is known of the problem":         func(a *trail.Acknowledgement) { a.Note, a.Ticket = "\n", "" },
		"expected a namespace and a VM, or a node": func(a *trail.Acknowledgement) { a.Node = "n1" },
		"expected a time in the future":            func(a *trail.Acknowledgement) { a.ExpiresAt = now },
		"expected at most 30 days from now":        func(a *trail.Acknowledgement) { a.ExpiresAt = now.Add(trail.AckMost + time.Second) },
	} {
		bad := base
		change(&bad)
		_, err := bad.Clean(now)
		require.ErrorContains(t, err, text)
	}
	noVM := base
	noVM.VMI = ""
	_, err = noVM.Clean(now)
	require.ErrorContains(t, err, "expected a namespace and a VM, or a node")
}

// TestTicketURL: only what browsers open as a page is an address.
func TestTicketURL(t *testing.T) {
	t.Parallel()
	for ticket, is := range map[string]bool{
		"https://tickets.example/OPS-17": true, "http://tickets.example": true, "OPS-17": false, "javascript:alert(1)": false, "data:text/html,x": false,
		"//tickets.example": false, "https:tickets.example": false, "https://user:secret@tickets.example": false,
	} {
		require.Equal(t, is, trail.Acknowledgement{Ticket: ticket}.TicketURL() != "", ticket)
	}
}
