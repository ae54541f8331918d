package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/evictrail/evictrail/store/spool"
)

// checkSpool reports what waits for the database, as far as no running evictrail has the spool.
func (d *doctor) checkSpool() {
	if d.name == "" || d.f.spool.checkFlags() != nil {
		return
	}
	c, err := spool.Inspect(d.f.spool.dir, d.name)
	switch {
	case errors.Is(err, spool.ErrHeld):
		d.addOKf("spool", "%s: a running evictrail has it; /readyz, its log and evictrail_spool_facts show what waits", c.Path)
	case err != nil:
		d.addCheck(healthFail, "spool", err.Error(), "name a directory that can be written with --spool-dir: without one a crash loses what the database does not have")
	case c.Facts > 0:
		d.addCheck(healthWarn, "spool", fmt.Sprintf("%s: %d facts wait for the database, the oldest since %s", c.Path, c.Facts, c.Oldest.Format(time.RFC3339)), "start `evictrail run` with the database there: it stores them")
	default:
		d.addOKf("spool", "%s: nothing waits for the database", c.Path)
	}
	d.checkDeadLetters()
}

// checkDeadLetters says what was refused and set aside, also while a running evictrail has the spool.
func (d *doctor) checkDeadLetters() {
	path := spool.LettersPath(d.f.spool.dir, d.name)
	letters, unreadable, err := spool.DeadLetters(d.f.spool.dir, d.name)
	switch {
	case err != nil:
		d.addCheck(healthWarn, "refused facts", err.Error(), "run doctor as the user of `evictrail run`")
	case len(letters) > 0:
		last := letters[len(letters)-1]
		finding := fmt.Sprintf("%s: %d facts were refused and set aside, the last at %s: %s", path, len(letters), last.At.Format(time.RFC3339), last.Reason)
		d.addCheck(healthWarn, "refused facts", finding, "upgrade evictrail, then run `evictrail spool replay`: docs/runbooks/EvictrailFactsRefused.md")
	case unreadable > 0:
		d.addCheck(healthWarn, "refused facts", fmt.Sprintf("%s: %d lines cannot be read", path, unreadable), "look at the file: it is JSON, one object a line")
	default:
		d.addOKf("refused facts", "none")
	}
}
