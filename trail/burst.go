package trail

import "time"

// burst is a part of a list, in the order of times, that begins with so many within some time and lasts for as long as
// there were that many.
type burst[T any] struct {
	of     []T
	opened time.Time // when there were so many for the first time
	quiet  time.Time // from when on there are fewer
}

// findBursts finds the bursts of a list that is in the order of times: count of it within less than some time. A count
// below one finds none.
func findBursts[T any](all []T, at func(T) time.Time, count int, within time.Duration) []burst[T] {
	if count < 1 {
		return nil
	}
	var out []burst[T]
	for i := count - 1; i < len(all); i++ {
		first, last := i-count+1, i
		if at(all[i]).Sub(at(all[first])) >= within {
			continue
		}
		falls := func() time.Time { return at(all[last-count+1]).Add(within) }
		for last+1 < len(all) && at(all[last+1]).Before(falls()) {
			last++
		}
		out = append(out, burst[T]{all[first : last+1], at(all[i]), falls()})
		i = last
	}
	return out
}
