// Package rewind shows how it stood with a cluster at each moment of a period, from its rows as they are now.
//
//	r := rewind.New(&rewind.History{From: from, To: to, Evacuations: evacuations, Migrations: migrations})
//	for at := from; !at.After(to); at = at.Add(time.Minute) {
//		news := r.Advance(at)  // what "evictrail run" would have counted since
//		state := r.State()     // what its gauges would have shown
//	}
//
// One evacuation from 10:00 to 10:40 with failed attempts at 10:05 and 10:20 goes in. At 10:30 the State has an open
// evacuation with two failed attempts; at 10:41 it has none, and News of 10:00 and 10:40 had its beginning and its end.
//
// What holds:
//
//   - What came later is taken back: ends, outcomes, attempts and phases after a moment are not in its State.
//   - What is known of a moment is what is known of it today. A fact that came late is there from when it happened. A VM
//     is not migratable for as long as its placement says so today, a loop of a VM counts what it counted in the end,
//     and a migration without a target pod waits for what it waited for longest.
//   - A loop that later facts refuted is open until then, as it was shown.
//
// Read history.go first (what goes in), then replay.go (the order of moments), news.go and state.go (what comes out).
//
// Like trail: no clock, no I/O, nothing safe for concurrent use.
package rewind
