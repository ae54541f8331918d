package embedded

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// The wait before a server that ended by itself is started again. It doubles with each attempt, and is the first one again once a server has run for
// steadyAfter.
const (
	restartFirst = 500 * time.Millisecond
	restartMost  = 30 * time.Second
	steadyAfter  = time.Minute
)

// Keeper keeps a server running on a directory: one that ended by itself, such as one that the kernel killed for want of memory, is started again. Between
// the two the database is away, as one on another host may be, and comes back at the same URL. It is safe for concurrent use.
type Keeper struct {
	opts Options
	log  *slog.Logger
	end  context.CancelFunc // no server is started after it
	done chan struct{}      // closed once none will be

	said string // what the log said last of a server that could not be started

	mu     sync.Mutex
	server *Server // the last one that was started
}

// Keep starts a server as Start does, and keeps it running until Stop. The context bounds the first start only.
func Keep(ctx context.Context, opts Options) (*Keeper, error) {
	server, err := Start(ctx, opts)
	if err != nil {
		return nil, err
	}
	opts.socketDir = server.socketDir
	k := &Keeper{opts: opts, log: opts.Logger, done: make(chan struct{}), server: server}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	ctx, k.end = context.WithCancel(context.WithoutCancel(ctx))
	go k.run(ctx)
	return k, nil
}

// URL is how pgx and psql reach a database of the server, whichever runs. See Server.URL.
func (k *Keeper) URL(database string) string { return k.Server().URL(database) }

// Server returns the server that was started last. It may have ended.
func (k *Keeper) Server() *Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.server
}

// Stop ends the server as Server.Stop does, and starts none again.
func (k *Keeper) Stop(ctx context.Context) error {
	k.end()
	<-k.done
	return k.Server().Stop(ctx)
}

// run starts a server again each time that one has ended by itself, until ctx ends.
func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	wait := restartFirst
	for {
		server, began := k.Server(), time.Now()
		select {
		case <-server.Done():
		case <-ctx.Done():
			return
		}
		k.log.Warn("embedded server ended by itself, starting it again", "err", server.Err())
		if time.Since(began) > steadyAfter {
			wait = restartFirst
		}
		for server = nil; server == nil; wait = min(2*wait, restartMost) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			server = k.restartServer(ctx)
		}
		k.mu.Lock()
		k.server = server
		k.mu.Unlock()
	}
}

// restartServer starts a server, and returns nil where it cannot. Why it cannot is logged once.
func (k *Keeper) restartServer(ctx context.Context) *Server {
	server, err := Start(ctx, k.opts)
	switch {
	case err == nil:
		k.said = ""
	case ctx.Err() == nil && err.Error() != k.said:
		k.said = err.Error()
		k.log.Warn("embedded server not started, trying again", "err", err)
	}
	return server
}
