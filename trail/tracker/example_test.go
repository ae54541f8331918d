package tracker_test

import (
	"fmt"
	"time"

	"github.com/evictrail/evictrail/trail/tracker"
)

// A VMI is seen on n1, then marked to be moved away; listing it again adds nothing.
func Example() {
	vmi := tracker.VMIObservation{
		Seen: tracker.Seen{At: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)},
		Meta: tracker.Meta{UID: "4f1d", Namespace: "shop", Name: "db", ResourceVersion: "10"},
		Node: "n1", Phase: "Running", Strategy: "LiveMigrate",
	}
	t := tracker.New("prod")
	observe := func() {
		facts := t.Observe(vmi)
		fmt.Printf("version %s adds %d\n", vmi.ResourceVersion, len(facts))
		for _, f := range facts {
			fmt.Printf("  %s: %s of %s is %q, by %s\n", f.Kind, f.What, f.Subject, f.Value, f.Evidence)
		}
	}
	observe()
	vmi.ResourceVersion, vmi.Mark, vmi.EvictionSource = "11", "n1", "descheduler"
	observe()
	vmi.Listed = true
	observe()
	// Output:
	// version 10 adds 1
	//   vmi_placed: node of vmi:shop/db is "n1", by status.nodeName
	// version 11 adds 2
	//   evacuation_marked: mark of vmi:shop/db is "n1", by status.evacuationNodeName
	//   annotation_set: annotation/kubevirt.io/eviction-source of vmi:shop/db is "descheduler", by metadata.annotations[kubevirt.io/eviction-source]
	// version 11 adds 0
}
