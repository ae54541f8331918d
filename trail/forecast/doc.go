// Package forecast estimates how a drain of a node goes on, from how migrations of the same cluster went.
//
//	d := forecast.Node{Name: "worker-1", At: now, Guests: guests, History: attempts, PerNode: 2, PerCluster: 5}.Forecast()
//	fmt.Println(d.Band.Mid, d.Band.Low, d.Band.High) // until the last guest that moves has left
//
// It first says what an eviction does to each guest (guest.go): it moves, it is shut down, or it stays. Then it plays the
// drain of those that move many times (play.go): each attempt takes as long, and fails as often, as attempts of that VM did
// (history.go), KubeVirt's limits let so many run at once, and after a failure KubeVirt waits. What is left open after all
// runs is the band: one in ten ended before Low, one in ten after High.
//
//	attempts  --fitModel-->  model  --+
//	guests  ----------------------+--play, many times-->  Low, Mid, High, who is last
//	limits  ----------------------+
//
// Not modelled: how long a guest takes to shut down, what memory and bandwidth do to migrations that run side by side,
// migrations that others begin later, and whether another node has room.
//
// The same input makes the same forecast. Nothing here reads a clock or a database.
package forecast
