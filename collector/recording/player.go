package recording

import (
	"context"
	"fmt"
	"time"
)

// Hooks tie a player to the collector under test. All but Progress are required.
type Hooks struct {
	Clock    func(time.Time)                                                   // told the time of each line before it is released
	Watched  func(resource string) bool                                        // whether the collector watches the resource; others are not waited for
	Taken    func(ctx context.Context, resource, resourceVersion string) error // returns when the collector has taken the resource up to the version
	Progress func(done, total int)                                             // told after each line; may be nil
	Speed    float64                                                           // times real time; 0: as fast as the collector takes lines in
}

// Play releases a recording line by line, in its own time: the clock stands at a line's time until the collector has
// taken that line in, so order and time across resources are the recording's at any speed.
func Play(ctx context.Context, rec *Recording, server *Server, hooks Hooks) error {
	for i, line := range rec.Lines {
		if i > 0 && hooks.Speed > 0 {
			if err := pause(ctx, line.At.Sub(rec.Lines[i-1].At), hooks.Speed); err != nil {
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
	return nil
}

// pause waits for the time between two lines.
func pause(ctx context.Context, between time.Duration, speed float64) error {
	t := time.NewTimer(time.Duration(float64(between) / speed))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
