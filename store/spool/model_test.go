package spool

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// modelSteps is how many operations the model is compared over.
const modelSteps = 40_000

// entry is what the model holds: a fact or a sign.
type entry struct {
	fact *trail.Fact
	sign *trail.Sign
}

// TestAsTheModel does random things to a spool and to a slice, and wants the same to come out of both. It lies in memory; that it is synced is
// for the tests of power cuts.
func TestAsTheModel(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	open := func(dir string) *rig {
		r := openRig(t, dir, 1<<40)
		r.journal.limit = 64 << 10 // bytes: there are many, and states are folded now and then
		return r
	}
	r := open(memoryDir(t))
	var model []entry
	state := map[string]string{} // by object and aspect
	given := 0                   // how much of the model Next returned and Confirm has not confirmed
	tr := tracker.New("c1")
	alive := time.Time{}
	version := 0
	for step := range modelSteps / everyNinthInShort() {
		note := func() string { return fmt.Sprintf("step %d of seed %d", step, seed) }
		switch op := random.IntN(1000); {
		case op < 400: // some objects change
			var facts []trail.Fact
			for range 1 + random.IntN(4) {
				version++
				n := random.IntN(50)
				o := tracker.VMIObservation{
					Seen: tracker.Seen{At: start.Add(time.Duration(version) * time.Millisecond), Gone: random.IntN(10) == 0},
					Meta: tracker.Meta{UID: fmt.Sprint("u", n), Namespace: "shop", Name: fmt.Sprint("vm-", n), ResourceVersion: fmt.Sprint(version)},
					Node: fmt.Sprint("worker-", random.IntN(3)), Mark: []string{"", "worker-1"}[random.IntN(2)],
				}
				facts = append(facts, tr.Observe(o)...)
			}
			if len(facts) == 0 {
				continue
			}
			r.appendFacts(t, facts)
			for _, f := range facts {
				model = append(model, entry{fact: &f})
				if f.What != trail.WhatGone {
					state[f.Object.UID+" "+f.What] = f.Value
					continue
				}
				for _, what := range []string{"node", "mark"} {
					delete(state, f.Object.UID+" "+what)
				}
			}
		case op < 550: // a sign of life
			alive = start.Add(time.Duration(step) * time.Second)
			sign := trail.Sign{At: alive, Watching: []trail.Watching{{Source: []string{"pods", "nodes"}[random.IntN(2)], Since: start}}}
			r.AppendSign(sign.At, sign.Watching)
			model = append(model, entry{sign: &sign})
		case op < 750: // what comes next
			if len(model) == 0 {
				continue
			}
			facts, sign, err := r.Next(t.Context())
			require.NoError(t, err)
			if given = len(facts); sign != nil { // the last of those that say the same
				for given < len(model) && model[given].sign != nil && model[given].sign.Watching[0] == model[0].sign.Watching[0] {
					given++
				}
				require.Equal(t, model[given-1].sign, sign, note())
			}
			for i := range facts {
				require.Equal(t, *model[i].fact, facts[i], note())
			}
		case op < 990: // it is stored
			r.Confirm()
			model, given = model[given:], 0
		case op < 992: // a crash
			files := r.imageOf(t)
			require.NoError(t, r.Close())
			require.NoError(t, os.RemoveAll(r.path))
			require.NoError(t, os.Mkdir(r.path, 0o700))
			for name, raw := range files {
				require.NoError(t, os.WriteFile(filepath.Join(r.path, name), raw, 0o600))
			}
			r = open(r.Dir)
			given = 0
		default: // how it stands
			facts := 0
			for _, e := range model {
				if e.fact != nil {
					facts++
				}
			}
			require.Equal(t, facts, r.Condition().Facts, note())
			past, objects := r.loadPast(t, false)
			require.Equal(t, alive, past.Alive, note())
			got := map[string]string{}
			for _, f := range objects {
				got[f.Object.UID+" "+f.What] = f.Value
			}
			require.Equal(t, state, got, note())
		}
	}
	require.Empty(t, r.lost)
}
