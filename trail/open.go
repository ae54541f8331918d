package trail

import "time"

// Row is a derived row.
type Row interface {
	// OpenUntil returns when what the row is about ended, UTC; zero while it goes on. It is never before that began, although an end may be
	// derived that is earlier, while facts are missing.
	//
	// This is the only definition of "ended". The store writes it with each row, as column open_until of all derived tables, and compares nothing
	// else. For example, a request of 10:00 that was answered at 10:01 and repeated until 10:30 was open until 10:30.
	OpenUntil() time.Time
}

// OpenUntil returns when the request was repeated last, or was answered.
func (r EvictionRequest) OpenUntil() time.Time {
	return maxTime(maxTime(r.RequestedAt, r.AnsweredAt), r.LastRepeatAt)
}

// OpenUntil returns when the evacuation ended; zero while it goes on.
func (e Evacuation) OpenUntil() time.Time { return endOf(e.MarkedAt, e.EndedAt) }

// OpenUntil returns when the migration finished; zero while it runs.
func (m Migration) OpenUntil() time.Time { return endOf(m.CreatedAt, m.FinishedAt) }

// OpenUntil returns when the guest left the node; zero while it is there.
func (p Placement) OpenUntil() time.Time { return endOf(p.FromAt, p.ToAt) }

// OpenUntil returns until when the decision holds the VM back.
func (d Decision) OpenUntil() time.Time { return maxTime(d.DecidedAt, d.Until) }

// OpenUntil returns when the loop was closed; zero while it is open.
func (l Loop) OpenUntil() time.Time { return endOf(l.OpenedAt, l.ClosedAt) }

// OpenUntil returns when the drain ended; zero while it goes on.
func (d Drain) OpenUntil() time.Time { return endOf(d.StartedAt, d.EndedAt) }

// OpenUntil returns zero: what a drain left is shown until there is another drain of the node.
func (DrainBlocker) OpenUntil() time.Time { return time.Time{} }

// OpenUntil returns when the later migration was created.
func (c Consequence) OpenUntil() time.Time { return c.At }

// OpenUntil returns when the node was ready again or deleted; zero while it is not ready.
func (o Outage) OpenUntil() time.Time { return endOf(o.BeganAt, o.EndedAt) }

// OpenUntil returns when the source could be observed again; zero while it cannot.
func (g Gap) OpenUntil() time.Time { return endOf(g.OpenedAt, g.ClosedAt) }

// OpenUntil returns the time of the line or, where it counts repetitions, of the last of them. A line that was read from a database does not know them.
func (l Line) OpenUntil() time.Time { return maxTime(l.At, l.repeatedAt) }

// EndedBefore reports whether what a row is about ended before a time.
func EndedBefore(r Row, at time.Time) bool {
	until := r.OpenUntil()
	return !until.IsZero() && until.Before(at)
}

func endOf(began, ended time.Time) time.Time {
	if ended.IsZero() {
		return ended
	}
	return maxTime(began, ended)
}
