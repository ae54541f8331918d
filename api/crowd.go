package api

import (
	"context"
	"errors"
)

// What is asked of the database at the same time. Its pool has four connections at least: one is left for the collector.
const (
	readAtOnce = 3  // questions
	readQueue  = 64 // those, and those that wait
)

// errCrowded says that there are more questions than can wait.
var errCrowded = errors.New("too many questions at once")

// crowd bounds how many questions are asked of the database at the same time, and how many wait.
type crowd struct {
	queue chan struct{} // who waits or asks
	room  chan struct{} // who asks
	long  chan struct{} // who asks what takes long
}

func newCrowd() crowd {
	return crowd{queue: make(chan struct{}, readQueue), room: make(chan struct{}, readAtOnce), long: make(chan struct{}, 1)}
}

// turn waits until it may be asked.
type turn func(ctx context.Context) (leave func(), err error)

// replay is turn for a question that takes long: only one is asked at a time, so that others find room.
func (c crowd) replay(ctx context.Context) (func(), error) {
	select {
	case c.long <- struct{}{}:
	case <-ctx.Done():
		return nil, errCrowded
	}
	leave, err := c.turn(ctx)
	if err != nil {
		<-c.long
		return nil, err
	}
	return func() { leave(); <-c.long }, nil
}

// turn waits until it is the caller's turn; leave is to be called at its end. With an error there was none.
func (c crowd) turn(ctx context.Context) (leave func(), err error) {
	select {
	case c.queue <- struct{}{}:
	default:
		return nil, errCrowded
	}
	select {
	case c.room <- struct{}{}:
		return func() { <-c.room; <-c.queue }, nil
	case <-ctx.Done():
		<-c.queue
		return nil, errCrowded
	}
}
