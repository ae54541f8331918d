package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/trail/tracker"
)

// FuzzObject reads anything as an object of each resource that is watched: what cannot be read is an error, and what can be read is observed without a panic,
// alone and after it was seen before, and makes no more facts than there is text.
func FuzzObject(f *testing.F) {
	all := watchedWith(&PolicyMap{Namespace: "descheduler", Name: "descheduler"})
	index := map[string]int{}
	for i, r := range all {
		index[r.name] = i
	}
	rec, err := recording.Open(evictrail.Recordings(), "b2-dual-retry-same-vm", nil)
	require.NoError(f, err)
	seeds := map[string]int{}
	for _, l := range rec.Lines {
		if i, watched := index[l.Resource]; watched && l.Object != nil {
			if seeds[l.Resource]++; seeds[l.Resource]%20 == 1 {
				f.Add(uint8(i), []byte(l.Object), []byte(l.Object))
			}
		}
	}
	for i := range all {
		f.Add(uint8(i), []byte(`{"metadata":{"uid":"u","name":"n","namespace":"s","resourceVersion":"7"},"spec":null,"status":{"phase":"Unheard","phaseTransitionTimestamps":[{"phase":null}],"migrationState":null}}`), []byte(`{}`))
	}
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, kind uint8, first, second []byte) {
		r := all[int(kind)%len(all)]
		tr := tracker.New("fuzz")
		for i, raw := range [][]byte{first, second, first} {
			o := decodeObject(raw, r.slim())
			requireBounded(t, r, o)
			if o.err != nil {
				continue
			}
			require.NotEmpty(t, o.UID)
			if o.observe == nil {
				continue
			}
			facts := tr.Observe(o.observe(tracker.Seen{At: at.Add(time.Duration(i) * time.Second), Listed: i == 1}))
			require.LessOrEqual(t, len(facts), 16+len(raw))
			for _, fact := range facts {
				require.NotZero(t, fact.ID)
				require.NotEmpty(t, fact.Kind)
				require.False(t, fact.OccurredAt.IsZero())
			}
		}
	})
}

// FuzzPolicy reads anything as the descheduler's policy: settings, or an error that says what is wrong.
func FuzzPolicy(f *testing.F) {
	rec, err := recording.Open(evictrail.Recordings(), "m-dual-retry-loop-with-cooldown", nil)
	require.NoError(f, err)
	f.Add(rec.Policy)
	f.Add([]byte("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: [{pluginConfig: [{name: KubevirtMigrationAware, args: {migrationCooldown: 15m}}]}]"))
	f.Add([]byte("profiles: [null]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		settings, err := ReadPolicy(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		if settings != nil && settings.Cooldown != nil {
			require.GreaterOrEqual(t, settings.Cooldown.WithDefaults().Window, time.Duration(0))
		}
	})
}
