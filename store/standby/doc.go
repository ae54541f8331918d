// Package standby has questions answered by a standby of the database, and by its primary where the standby cannot.
//
//	r, err := standby.Open(ctx, standby.Options{Primary: whole, PrimaryDB: db, URL: url, MaxLag: 30 * time.Second})
//	go r.Run(ctx) // asks both servers for their position every second
//	err = r.Answer(ctx, scope, func(ctx context.Context, reader *read.Reader) error {
//		answer, err = reader.Why(ctx, question)
//		return err
//	})
//
// An answer is what the function makes, however many questions that takes. All of them are asked of one server. Where the
// standby fails in the middle of it, all of the answer is made again by the primary (answer.go).
//
// Which server answers is decided once a second, by where the two are in their log (position.go): the standby has all that
// the primary had written at a moment once it has replayed what was the primary's position then. So an idle primary
// makes no lag, and no two clocks are compared. Only while the primary does not answer counts when the last transaction was
// committed that the standby replayed. choice.go has the rule; trail.StandbySigns is what comes out.
//
// look.go looks at both servers. What a caller has written is read back by that caller: AwaitReplay.
package standby
