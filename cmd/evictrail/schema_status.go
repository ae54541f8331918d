package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/evictrail/evictrail/api"
	"github.com/evictrail/evictrail/store"
	"github.com/evictrail/evictrail/store/citus"
	"github.com/evictrail/evictrail/store/retention"
	"github.com/evictrail/evictrail/trail"
)

// schemaStatus is what "evictrail schema status" prints.
type schemaStatus struct {
	Version        int64           `json:"version"`
	Expected       int64           `json:"expected"`
	FactsFrom      *time.Time      `json:"facts_from"` // from when on all facts are there; null: none were dropped
	Partitions     []monthStatus   `json:"partitions"`
	DefaultFacts   int             `json:"default_partition_facts"` // counted up to 1000
	Classes        []classStatus   `json:"classes"`
	DatabaseBytes  int64           `json:"database_bytes"`
	FactBytes      float64         `json:"bytes_per_fact"`
	FactsADay      float64         `json:"facts_per_day"`
	BytesADay      int64           `json:"bytes_per_day"`
	NextDrop       *nextDropStatus `json:"next_drop"`        // null: nothing is dropped
	SettlesAtBytes *int64          `json:"settles_at_bytes"` // null: it grows without end
	CapacityBytes  *int64          `json:"capacity_bytes"`   // null: it was not said
	DaysLeft       *float64        `json:"days_left"`        // null: for ever, or the capacity was not said
	Citus          *citusStatus    `json:"citus"`            // null: a plain Postgres
}

// citusStatus is what of it is about a Citus cluster.
type citusStatus struct {
	Version string       `json:"version"`
	Tables  []string     `json:"distributed_tables"`
	Nodes   []nodeStatus `json:"nodes"`
}

type nodeStatus struct {
	Node   string `json:"node"` // host:port
	Active bool   `json:"active"`
	Holds  bool   `json:"may_have_shards"`
	Shards int64  `json:"shards"`
}

// showSchemaStatus prints the status of a database, in which things are kept for so long. The error says, too, what is
// wrong with its version.
func showSchemaStatus(
	ctx context.Context, s *store.Store, out io.Writer, format string, kept retention.Policy, capacity int64,
) error {
	status, err := s.Schema(ctx)
	if err != nil {
		return err
	}
	shown := schemaStatus{Version: status.Version, Expected: status.Expected}
	if err := shown.readCitus(ctx, s); err != nil {
		return err
	}
	if status.Version == status.Expected || status.Newer() {
		storage, err := retention.Measure(ctx, s.DB, nowUTC())
		if err != nil {
			return err
		}
		shown.setStorage(storage, kept, capacity)
	}
	if err := shown.printStatus(out, format); err != nil {
		return err
	}
	return status.Check()
}

// readCitus takes in which tables lie on which servers.
func (s *schemaStatus) readCitus(ctx context.Context, from *store.Store) error {
	state, err := citus.Read(ctx, from.DB)
	if err != nil || state.Version == "" {
		return err
	}
	s.Citus = &citusStatus{Version: state.Version, Tables: append([]string{}, state.Tables...), Nodes: []nodeStatus{}}
	for _, n := range state.Nodes {
		s.Citus.Nodes = append(s.Citus.Nodes, nodeStatus(n))
	}
	return nil
}

// printCitus writes the lines about a Citus cluster.
func (s *citusStatus) printCitus(line func(cells ...any)) {
	line("Citus:", fmt.Sprintf("%s, %d tables distributed", s.Version, len(s.Tables)))
	line()
	line("NODE", "ACTIVE", "MAY HAVE SHARDS", "SHARDS")
	for _, n := range s.Nodes {
		line(n.Node, n.Active, n.Holds, n.Shards)
	}
}

type monthStatus struct {
	Partition string     `json:"partition"`
	From      *time.Time `json:"from"` // null: of all earlier times, what was kept
	To        time.Time  `json:"to"`
	Facts     int64      `json:"facts"`
	Bytes     int64      `json:"bytes"`
}

type classStatus struct {
	Class string `json:"class"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

type nextDropStatus struct {
	Partition string    `json:"partition"`
	At        time.Time `json:"at"`
	Facts     int64     `json:"facts"`
	Bytes     int64     `json:"bytes"`
}

// setStorage takes in what lies in a database in which things are kept for so long, and that has so much room; 0: nobody said.
func (s *schemaStatus) setStorage(in retention.Storage, r retention.Policy, capacity int64) {
	facts, rows := in.BytesADay()
	s.DatabaseBytes, s.FactBytes, s.FactsADay, s.BytesADay, s.DefaultFacts = in.Database, math.Round(in.FactBytes()), math.Round(in.FactsADay), int64(facts+rows), in.StrayFacts
	if !in.FactsFrom.IsZero() {
		s.FactsFrom = &in.FactsFrom
	}
	for _, p := range in.Partitions {
		m := monthStatus{Partition: p.Name, To: p.To, Facts: p.Facts, Bytes: p.Bytes}
		if !p.From.IsZero() {
			m.From = &p.From
		}
		s.Partitions = append(s.Partitions, m)
	}
	for _, c := range in.Classes {
		s.Classes = append(s.Classes, classStatus{c.Name, c.Rows, c.Bytes})
	}
	if p, at, ok := in.Next(r); ok {
		s.NextDrop = &nextDropStatus{p.Name, at, p.Facts, p.Bytes}
	}
	if settles := in.Settles(r); settles > 0 {
		s.SettlesAtBytes = &settles
	}
	if capacity == 0 {
		return
	}
	s.CapacityBytes = &capacity
	if enough := s.SettlesAtBytes != nil && *s.SettlesAtBytes <= capacity; !enough && s.BytesADay > 0 {
		left := math.Max(math.Round(float64(capacity-s.DatabaseBytes)/float64(s.BytesADay)*10)/10, 0)
		s.DaysLeft = &left
	}
}

// printStatus writes the status for people or programs.
func (s *schemaStatus) printStatus(out io.Writer, format string) error {
	if format == "json" {
		return api.WriteJSON(out, s)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				_, _ = fmt.Fprint(w, "\t")
			}
			_, _ = fmt.Fprint(w, c)
		}
		_, _ = fmt.Fprintln(w)
	}
	line("database:", s.Version)
	line("needed:", s.Expected)
	if s.Citus != nil {
		s.Citus.printCitus(line)
	}
	if s.Classes == nil {
		return w.Flush()
	}
	line()
	line("PARTITION", "FROM", "UNTIL", "FACTS", "SIZE")
	for _, p := range s.Partitions {
		from := "(what was kept)"
		if p.From != nil {
			from = p.From.Format(time.DateOnly)
		}
		line(p.Partition, from, p.To.Format(time.DateOnly), p.Facts, trail.FormatBytes(p.Bytes))
	}
	line("events_default", "", "", s.DefaultFacts, "")
	line()
	line("CLASS", "ROWS", "SIZE")
	for _, c := range s.Classes {
		line(c.Class, c.Rows, trail.FormatBytes(c.Bytes))
	}
	line()
	line("size of the database:", trail.FormatBytes(s.DatabaseBytes))
	line("facts a day:", fmt.Sprintf("%.0f, of %s each", s.FactsADay, trail.FormatBytes(int64(s.FactBytes))))
	line("growth a day:", trail.FormatBytes(s.BytesADay))
	switch {
	case s.SettlesAtBytes != nil:
		line("projected size:", trail.FormatBytes(*s.SettlesAtBytes)+" (at the current rate)")
	default:
		line("projected size:", "grows without end: some of it is kept for ever")
	}
	if s.NextDrop != nil {
		line("dropped next:", fmt.Sprintf("%s on %s (%d facts, %s)", s.NextDrop.Partition, s.NextDrop.At.Format(time.DateOnly), s.NextDrop.Facts, trail.FormatBytes(s.NextDrop.Bytes)))
	}
	line("days left:", s.formatTimeLeft())
	return w.Flush()
}

// formatTimeLeft says for people for how long the room lasts.
func (s *schemaStatus) formatTimeLeft() string {
	switch {
	case s.CapacityBytes == nil:
		return "not known: say how much room there is with --capacity"
	case s.DaysLeft == nil:
		return "for ever at the current rate: " + trail.FormatBytes(*s.CapacityBytes) + " are enough"
	}
	return fmt.Sprintf("%g at the current rate", *s.DaysLeft)
}
