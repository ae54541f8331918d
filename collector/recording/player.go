package recording

import (
	"context"
	"fmt"
	"time"
)

// Hooks tie a player to the collector under test. All but Audit, Scrape, Tick and Progress are required.
type Hooks struct {
	Clock    func(time.Time)                                                   // called with the time of each line before it is released
	Watched  func(resource string) bool                                        // whether the collector watches the resource; others are not waited for
	Taken    func(ctx context.Context, resource, resourceVersion string) error // returns when the collector has taken the resource up to the version
	Audit    func(ctx context.Context, events [][]byte) error                  // takes audit events as the API server sends them; nil: none are sent
	Scrape   func(ctx context.Context) error                                   // reads the descheduler's metrics, which the server has at ScrapePath, and returns when they are taken; nil: they are not read
	Tick     func(ctx context.Context, at time.Time) error                     // called every Every of the recording's time, from its start on, when all that is due was taken; nil: never
	Every    time.Duration
	Delay    time.Duration         // how long after an event was logged it is sent
	Progress func(done, total int) // called after each line; may be nil
	Speed    float64               // times real time; 0: as fast as the collector takes lines in
}

// Play releases a recording line by line, in its own time: the clock stands at a line's time until the collector has
// taken that line in, so order and time across resources are the recording's at any speed. Audit events are sent and the
// descheduler's metrics are read between the lines, when they are due, and those that are due after the last line, at the end.
func Play(ctx context.Context, rec *Recording, server *Server, hooks Hooks) error {
	between := &between{mail: post{events: rec.Audit, hooks: hooks}, rec: rec, server: server, hooks: hooks, tick: rec.Start()}
	for i, line := range rec.Lines {
		if err := between.playUntil(ctx, line.At); err != nil {
			return fmt.Errorf("play %s: line %d: %w", rec.Name, line.Number, err)
		}
		if i > 0 && hooks.Speed > 0 {
			if err := sleepScaled(ctx, line.At.Sub(rec.Lines[i-1].At), hooks.Speed); err != nil {
				return fmt.Errorf("play %s: line %d: %w", rec.Name, line.Number, err)
			}
		}
		hooks.Clock(line.At)
		for _, at := range server.Release(i) {
			if !hooks.Watched(at.Resource) {
				continue
			}
			if err := hooks.Taken(ctx, at.Resource, at.ResourceVersion); err != nil {
				return fmt.Errorf("play %s: line %d: wait for the collector: %w", rec.Name, line.Number, err)
			}
		}
		if hooks.Progress != nil {
			hooks.Progress(i+1, len(rec.Lines))
		}
	}
	if err := between.playRemaining(ctx); err != nil {
		return fmt.Errorf("play %s: after the last line: %w", rec.Name, err)
	}
	return nil
}

// between is what happens between the lines, in the order of its times.
type between struct {
	mail    post
	rec     *Recording
	server  *Server
	hooks   Hooks
	scraped int       // scrapes that are done
	tick    time.Time // the next one
	marked  time.Time // when bookmarks were last sent
}

// bookmarkEvery is the time between two bookmarks of an API server, which no recording has. They matter to what is sampled, and
// are sent with the ticks.
const bookmarkEvery = time.Minute

// playUntil does what is due up to a time, in the order of its times.
func (b *between) playUntil(ctx context.Context, now time.Time) error {
	for {
		ticks := b.hooks.Tick != nil && !b.tick.After(now)
		scrapes := b.scraped < len(b.rec.Scrapes) && !b.rec.Scrapes[b.scraped].At.After(now)
		var err error
		switch {
		case scrapes && (!ticks || !b.tick.Before(b.rec.Scrapes[b.scraped].At)):
			err = b.playScrape(ctx, b.rec.Scrapes[b.scraped].At)
		case ticks:
			err = b.doTick(ctx)
		default:
			return b.mail.sendDue(ctx, now)
		}
		if err != nil {
			return err
		}
	}
}

func (b *between) playScrape(ctx context.Context, at time.Time) error {
	if err := b.mail.sendDue(ctx, at); err != nil {
		return err
	}
	b.server.ReleaseScrape(b.scraped)
	b.scraped++
	if b.hooks.Scrape == nil {
		return nil
	}
	b.hooks.Clock(at)
	if err := b.hooks.Scrape(ctx); err != nil {
		return fmt.Errorf("scrape at %s: %w", at.Format(time.RFC3339), err)
	}
	return nil
}

func (b *between) doTick(ctx context.Context) error {
	at := b.tick
	b.tick = at.Add(b.hooks.Every)
	if err := b.mail.sendDue(ctx, at); err != nil {
		return err
	}
	b.hooks.Clock(at)
	if at.Sub(b.marked) >= bookmarkEvery {
		b.marked = at
		b.server.Bookmark()
	}
	return b.hooks.Tick(ctx, at)
}

// playRemaining does what is due after the last line.
func (b *between) playRemaining(ctx context.Context) error {
	last := b.rec.End()
	if n := len(b.rec.Scrapes); n > 0 {
		last = maxTime(last, b.rec.Scrapes[n-1].At)
	}
	if n := len(b.rec.Audit); n > 0 {
		last = maxTime(last, b.rec.Audit[n-1].At.Add(b.hooks.Delay))
	}
	return b.playUntil(ctx, last)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// post is the audit log on its way.
type post struct {
	events []AuditLine // that were not sent yet
	hooks  Hooks
}

// sendAtOnce is how many events an API server sends in one batch.
//
// Source: kube-apiserver --audit-webhook-batch-max-size.
const sendAtOnce = 400

// sendDue sends what is due at a time.
func (p *post) sendDue(ctx context.Context, now time.Time) error {
	for p.hooks.Audit != nil && len(p.events) > 0 {
		var due [][]byte
		for len(due) < min(sendAtOnce, len(p.events)) && !p.events[len(due)].At.Add(p.hooks.Delay).After(now) {
			due = append(due, p.events[len(due)].Event)
		}
		if len(due) == 0 {
			return nil
		}
		p.hooks.Clock(p.events[len(due)-1].At.Add(p.hooks.Delay))
		if err := p.hooks.Audit(ctx, due); err != nil {
			return fmt.Errorf("send %d audit events: %w", len(due), err)
		}
		p.events = p.events[len(due):]
	}
	return nil
}

// sleepScaled waits for the time between two lines.
func sleepScaled(ctx context.Context, between time.Duration, speed float64) error {
	t := time.NewTimer(time.Duration(float64(between) / speed))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
