package bench_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var (
	rounds = flag.Int("bench.rounds", 1, "how often the sides of a row take turns")
	size   = flag.Int("bench.size", 1, "1, 10 or 100: up to how many times the least sizes are measured")

	hold        = flag.String("bench.hold", "collector", "who holds what TestHold lists: collector, leader or informer")
	holdObjects = flag.Int("bench.objects", 1000, "how many VMIs, migrations and pods TestHold lists")

	peerName     = flag.String("bench.peer", "", "who watches in TestPeer: evictrail, archive or informer")
	peerAPI      = flag.String("bench.apiserver", "", "the URL of what TestPeer watches")
	peerDatabase = flag.String("bench.database", "", "the URL of the database that TestPeer writes into")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	stopServer()
	if len(table.rows) > 0 {
		_, _ = fmt.Println()
		writeTable(os.Stdout, table.rows)
	}
	os.Exit(code)
}
