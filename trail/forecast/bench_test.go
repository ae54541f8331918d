package forecast_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/evictrail/evictrail/trail/forecast"
)

// BenchmarkForecast forecasts a node with 100 guests of a cluster in which 5,000 attempts are known, one in ten of which
// failed.
func BenchmarkForecast(b *testing.B) {
	n := forecast.Node{Name: "n1", At: time.Unix(1_800_000_000, 0), PerNode: 2, PerCluster: 5}
	for i := range 5000 {
		n.History = append(n.History, forecast.Attempt{
			Namespace: "shop", VMI: fmt.Sprint("vm-", i%700), Took: time.Duration(20+i%90) * time.Second, Failed: i%10 == 0,
		})
	}
	for i := range 100 {
		n.Guests = append(n.Guests, forecast.Guest{Namespace: "shop", VMI: fmt.Sprint("vm-", i*11), VMIUID: fmt.Sprint(i), Strategy: "LiveMigrate"})
	}
	for b.Loop() {
		n.Forecast()
	}
}
