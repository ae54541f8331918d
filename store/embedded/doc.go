// Package embedded runs a real PostgreSQL server for one machine: a parent directory goes in, a URL comes out. The
// server is a child process made from the binaries that are installed here; nothing is downloaded.
//
//	server, err := embedded.Keep(ctx, embedded.Options{Dir: embedded.DefaultDir()})
//	defer server.Stop(ctx)
//	s, err := store.Open(ctx, server.URL("evictrail"), "")
//
// What lies in the parent directory:
//
//	.lock       held by the one evictrail that uses the directory; the kernel lets go of it when that process ends
//	pg15/       the data directory of one major version; never emptied, overwritten or removed by us
//	pg15.log    what the server said; the file before it is pg15.log.1
//	socket/     the Unix socket, the only way in; where its path would be too long, a directory under os.TempDir
//
// The server must not outlive us. On Linux the kernel sends it an interrupt (a fast shutdown) when we die, however we
// die; elsewhere, and where that was not enough, the next Start stops what it finds running on its data directory.
// One goroutine per Server, started by Start, forks the server, waits for it and releases the lock; it ends with
// the server. A service manager should signal evictrail alone (systemd: KillMode=mixed): a SIGTERM of its own makes the
// server refuse the connections that a last write may need.
//
// A server that ends by itself is started again by a Keeper, at the same URL.
//
// PostgreSQL refuses to run as root. For root, the server runs as the user postgres, else nobody, and owns its data
// and socket directories; we change the owner of nothing that was there before.
//
// Read embedded.go first, then keeper.go and datadir.go; binaries.go looks for the server, account.go is the user that it runs as,
// predecessor.go deals with a server that outlived its evictrail, log.go reads what the server said, and the process
// files hold what differs between Linux and other Unix systems.
package embedded
