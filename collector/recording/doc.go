// Package recording reads and writes recordings of clusters, serves them as a Kubernetes API and plays them in their own time.
//
//	rec, err := recording.Open(evictrail.Recordings(), "b-dual-retry-loop", collector.Check)
//	server := recording.NewServer(rec, recording.ServerOptions{}) // a collector c watches it over HTTP
//	err = recording.Play(ctx, rec, server, recording.Hooks{Clock: clock.Set, Watched: collector.Watches, Taken: c.Taken})
//
// A recording is a folder with what a client received of lists and watches, one line each (testdata/recordings), and what
// the API server logged and the descheduler's metrics said during that time. Open reads and checks it; NewServer serves it with
// the watch protocol's real semantics (resourceVersion, bookmarks, streamed lists, 410 Gone); Play releases it line by line
// and waits until the collector under test has taken each in. So the collector that is tested is the one that ships: it
// lists, watches and scrapes over HTTP and knows nothing of recordings.
//
// Read recording.go for the format, server.go for lists and what is released, watch.go for streams, player.go for time, writer.go for new ones.
package recording
