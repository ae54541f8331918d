// Package delivery keeps how far programs outside of evictrail were notified of what happens:
//
//	p, err := delivery.Begin(ctx, db, "prod", "cloudevents")     // where it stands
//	news, err := p.Undelivered(ctx, db, notices)                 // those of them that it does not have
//	err = p.Deliver(ctx, db, notice)                             // one was sent, and taken
//	err = p.Advance(ctx, db, until)                              // all that changed before was sent
//
// A receiver gets each notice at least once: a process that stops between sending and Deliver sends again, under the same ID. What happened
// before a receiver was first known is not sent, nor what is derived again of more than a week before what it was sent last.
package delivery
