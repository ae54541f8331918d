package whatif

// Assumption is something that a replay takes for granted.
type Assumption struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// What replays take for granted.
var (
	AssumeAsked = Assumption{"only_what_was_asked", "Nothing happens that nobody asked for: an eviction that would have been held back comes when the descheduler asks for that VM again, " +
		"and not where it does not. So the migrations saved are the most that can be."}
	AssumeWish = Assumption{"the_wish_follows_the_vm", "The descheduler asks for a VM when it did, also where that VM would have stood on another node by then."}
	AssumeLoad = Assumption{"load_is_not_replayed", "The load of nodes is not computed: other VMs are evicted as they were, also where one more or one less would have been beside them."}
	AssumeOpen = Assumption{"what_was_under_way_stays", "Evacuations that were under way when the period begins stay as they were, and migrations before it count for cooldowns as they were."}
	AssumeHot  = Assumption{"asked_means_hot", "A node is hot when the descheduler asks for a VM of it. Whether it stayed hot shows only where it asks again."}

	AssumeCooldown = Assumption{"cooldown_by_the_plugin", "The cooldown is computed as KubevirtMigrationAware does: from the end of the last migration, at least as long as that took, doubled for each further one in the window, " +
		"up to the cap; migrations that failed after their data began to move count. What the descheduler forgets when it is started again it forgets here, too."}
	AssumeSooner = Assumption{"sooner_as_the_last", "An eviction that comes sooner is counted where a counter of the descheduler shows that exactly one VM was kept from it, at the time at which the counter was read; " +
		"its migration succeeds, and takes as long as that VM's last one."}
	AssumeSlots = Assumption{"slots_by_the_annotation", "An eviction takes a slot of its node, no matter who asked, for as long as its pod is annotated as in progress: until the evacuation ends; with KubeVirt before v1.6.1 until " +
		"its first attempt fails."}
	AssumeTries = Assumption{"a_new_try_is_the_next_attempt", "When KubeVirt would have given up and somebody asks for the VM again, that is a new eviction, and the next recorded attempt is taken to be its first."}
	AssumeLoops = Assumption{"loops_avoided", "A loop is avoided where what opened it would not have happened, or too little of what it counts. Loops that a policy would make are not looked for."}
)

// listAssumptions returns what any of some policies rests on.
func listAssumptions(policies []Policy) []Assumption {
	out := []Assumption{AssumeAsked, AssumeWish, AssumeLoad, AssumeOpen, AssumeHot, AssumeLoops}
	some := func(of func(Policy) bool, a ...Assumption) {
		for _, p := range policies {
			if of(p) {
				out = append(out, a...)
				return
			}
		}
	}
	some(func(p Policy) bool { return p.Cooldown != nil }, AssumeCooldown, AssumeSooner)
	some(func(p Policy) bool { return p.hasSlotSettings() }, AssumeSlots)
	some(func(p Policy) bool { return p.TryOnce || p.GiveUpAfter > 0 }, AssumeTries)
	return out
}
