package trail

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Query asks for rows of one view. Zero fields ask for everything.
type Query struct {
	Cluster      string
	Namespace    string
	VMI          string
	Node         string
	Since        time.Time // inclusive
	Until        time.Time // exclusive
	ChangedSince time.Time // only rows that came or changed then or later, by the database's clock
	EndedSince   time.Time // only rows that were over then or later
	EndedUntil   time.Time // only rows that were over before
	Open         bool      // only rows that are not over
	Closed       bool      // only rows that are over
	First        bool      // of rows that repeat each other, only the first
	Oldest       bool      // the oldest rows first, not the newest
	Before       *Key      // only rows that come after this one in that order: the next page
	Limit        int       // the first that many; 0: all
	MaxBytes     int       // that these rows may have together, as they are sent; more: *TooLargeError. 0: no bound

	Values map[string]string // only rows with these values, by column of View.Sets
}

// Key is where a row stands in its view: rows are ordered by time, then ID, then cluster.
type Key struct {
	At      time.Time
	ID      string
	Cluster string
}

// MarshalText returns the key as one word that can stand in a URL.
func (k Key) MarshalText() ([]byte, error) {
	return []byte(base64.RawURLEncoding.EncodeToString([]byte(strings.Join([]string{k.At.UTC().Format(time.RFC3339Nano), k.ID, k.Cluster}, "\n")))), nil
}

// UnmarshalText reads what MarshalText returned.
func (k *Key) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.DecodeString(string(text))
	parts := strings.SplitN(string(raw), "\n", 3)
	if err != nil || len(parts) != 3 {
		return fmt.Errorf("key %q: expected one that a page named", text)
	}
	k.ID, k.Cluster = parts[1], parts[2]
	if k.At, err = time.Parse(time.RFC3339Nano, parts[0]); err != nil {
		return fmt.Errorf("key %q: expected one that a page named", text)
	}
	return nil
}

// Page is some rows of a view, in the order that was asked for: the newest first, or the oldest.
type Page[Row any] struct {
	Rows []Row
	Next *Key // to ask for the rows after them with; nil where there are none
}

// listLookback is the period of a list that has neither a lower bound nor a next page.
const listLookback = 24 * time.Hour

// Period returns the period that a page of the list covers: from the lower bound of the query or, without one, from the key of the next page,
// and for a complete list the last 24 hours. A zero end is no bound. A list of the oldest first ends at the key of the next page.
func (q Query) Period(next *Key, now time.Time) (from, to time.Time) {
	if q.Oldest && next != nil {
		if q.Before != nil {
			return q.Before.At, next.At
		}
		return q.Since, next.At
	}
	switch {
	case !q.Since.IsZero():
		from = q.Since
	case !q.EndedSince.IsZero():
		from = q.EndedSince
	case next != nil:
		from = next.At
	default:
		from = now.Add(-listLookback)
	}
	return from, minNonZeroTime(q.Until, q.EndedUntil)
}

// Table is rows as Postgres writes them, in the order of a Page; a nil cell is NULL.
type Table struct {
	Columns []string
	Page[[]*string]
}

// CellTime is how a Table holds a time: as Postgres writes it in UTC.
const CellTime = "2006-01-02 15:04:05.999999-07"

// Question asks about one VM or one node.
type Question struct {
	Cluster string    // empty: the one in which it is known
	Of      Subject   // a VM or a node
	At      time.Time // as of when; zero: now or, where the cluster is not watched any more, when it was last seen
	Since   time.Time // from when on everything is wanted, for pictures; zero: from where the answer begins
	Move    string    // UID of a migration, since whose creation everything is wanted, too
	From    time.Time // with At: what is recorded now of the time from then until At, instead of what was known then; for pictures, not for answers
}

// ParseTime reads a time, a date, or an age before now such as 90m or 7d, in UTC; empty means zero.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.UTC); err == nil && t.UTC().Year() > 0 && t.UTC().Year() < 10000 {
			return t.UTC(), nil
		}
	}
	age := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			age = fmt.Sprintf("%dh", 24*n)
		}
	}
	if d, err := time.ParseDuration(age); err == nil && d >= 0 {
		return now.UTC().Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q: expected a time such as 2026-11-21T00:30:00Z, a date, or an age such as 90m or 7d", text)
}

// NameVM takes a VM as people write it: its name, or namespace/name where that agrees with the namespace asked for.
func (q *Query) NameVM(text string) error {
	namespace, name, ok := strings.Cut(text, "/")
	switch {
	case !ok:
		q.VMI = text
		return nil
	case namespace == "" || name == "" || strings.Contains(name, "/"):
		return fmt.Errorf("vm %q: expected a name or namespace/name", text)
	case q.Namespace != "" && q.Namespace != namespace:
		return fmt.Errorf("vm %s is not in namespace %s", text, q.Namespace)
	}
	q.Namespace, q.VMI = namespace, name
	return nil
}
