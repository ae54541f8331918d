package sim

import "time"

// firstBackoff is KubeVirt's wait after one failure; each further one doubles it.
const firstBackoff = 20 * time.Second

// keptMigrations is how many finished VMIMs of a VMI survive, no matter who made them.
//
// Source: kubevirt pkg/virt-controller/watch/migration/migration.go, defaultFinalizedMigrationGarbageCollectionBuffer.
const keptMigrations = 5

// heldUntil returns the time before which KubeVirt does not start a migration of an evacuation or an update, zero where it may at once.
// It is computed again from the VMIMs that still exist, so that it grows no more once the oldest are deleted.
//
// Source: kubevirt pkg/virt-controller/watch/migration/migration.go, handleMigrationBackoff.
func (m *migration) heldUntil() time.Time {
	if m.evacuates == "" && !m.updates {
		return time.Time{}
	}
	wait, last := time.Duration(0), time.Time{}
	for i := len(m.vmi.migrations) - 1; i >= 0; i-- {
		older := m.vmi.migrations[i]
		if older == m || older.evacuates == "" && !older.updates || !older.meta.DeletionAt.IsZero() {
			continue
		}
		if older.phase != "Failed" {
			break
		}
		if wait == 0 {
			wait, last = firstBackoff, older.endedAt()
		} else {
			wait *= 2
		}
	}
	if wait == 0 {
		return time.Time{}
	}
	return last.Add(wait)
}

// collectGarbage deletes the oldest finished VMIMs of a VMI beyond those that are kept; since v1.9 their dead pods as well.
//
// Source: kubevirt pkg/virt-controller/watch/migration/migration.go, garbageCollectFinalizedMigrations.
func (c *cluster) collectGarbage(v *vmi) {
	var final []*migration
	for _, m := range v.migrations {
		if m.hasFinished() {
			final = append(final, m)
		}
	}
	for ; len(final) > keptMigrations; final = final[1:] {
		c.deleteMigration(final[0])
		if c.release.short && final[0].target != nil && final[0].phase == "Failed" {
			c.deletePod(final[0].target)
		}
	}
}
