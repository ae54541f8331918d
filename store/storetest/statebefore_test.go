package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestStateBeforeByHand has facts of a VMI, its pods and its migrations, some of which are gone, and looks what is left of them before a time.
func TestStateBeforeByHand(t *testing.T) {
	t.Parallel()
	ten := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	version := 0
	fact := func(kind trail.ObjectKind, uid, what, value, migration string) trail.Fact {
		version++
		var reason trail.Reason
		if what == "phase" {
			reason = trail.ReasonPodEnded
		}
		return trail.Fact{
			Reason: reason,
			Object: trail.Object{Kind: kind, UID: uid, ResourceVersion: fmt.Sprint(version)}, What: what, Value: value, MigrationUID: migration,
			OccurredAt: ten.Add(time.Duration(version) * time.Second),
		}
	}
	facts := []trail.Fact{
		fact(trail.ObjectVMI, "v0", "node", "n1", ""),
		fact(trail.ObjectVMI, "v0", trail.WhatGone, "true", ""),
		fact(trail.ObjectVMI, "v1", "node", "n1", ""),
		fact(trail.ObjectPod, "p0", "seen", "", ""),
		fact(trail.ObjectPod, "p0", "node", "n0", ""),
		fact(trail.ObjectPod, "p0", "phase", "Succeeded", ""),
		fact(trail.ObjectPod, "p1", "seen", "", ""),
		fact(trail.ObjectVMI, "v1", "node", "n3", ""),
		fact(trail.ObjectVMI, "v1", "mark", "n3", ""),
		fact(trail.ObjectMigration, "m1", "seen", "", "m1"),
		fact(trail.ObjectPod, "p2", "seen", "", "m1"),
		fact(trail.ObjectMigration, "m1", trail.WhatGone, "true", "m1"),
		fact(trail.ObjectMigration, "m2", "seen", "", "m2"),
		fact(trail.ObjectKubeEvent, "e1", "Migrated", "", "m2"),
		fact(trail.ObjectKubeEvent, "e2", "Created", "", ""),
		fact(trail.ObjectPod, "p1", trail.WhatGone, "true", ""),
		fact(trail.ObjectVMI, "v1", "node", "n2", ""),
		fact(trail.ObjectVMI, "v1", "mark", "", ""),
		fact(trail.ObjectPod, "p2", trail.WhatGone, "true", "m1"),
	}
	before := ten.Add(time.Duration(len(facts)) * time.Second) // the last fact is not from before
	var got []string
	for _, f := range StateBefore(facts, before) {
		got = append(got, fmt.Sprintf("%s %s %s", f.Object.UID, f.What, f.Value))
	}
	require.Equal(t, []string{"v1 node n1", "p0 phase Succeeded", "p2 seen ", "m2 seen ", "e1 Migrated ", "v1 node n2", "v1 mark "}, got)

	backwards := slices.Clone(facts)
	slices.Reverse(backwards)
	require.Len(t, StateBefore(backwards, before), len(got))
	require.Empty(t, StateBefore(facts, ten))
}
