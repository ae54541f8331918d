// Package notify notifies programs outside of evictrail of what happens, each of them at least once:
//
//	events, err := notify.NewCloudEvents(remote.Server{URL: "https://events.example/evictrail"})
//	t := notify.Notifier{DB: db, Rows: reader, Cluster: "prod", Receiver: events}
//	sent, err := t.SendNews(ctx)
//
// Receivers are CloudEvents over HTTP, traces (OTLP) and Events of Kubernetes. How far each was notified is kept in the database
// (store/delivery), so that one process goes on where another stopped.
package notify
