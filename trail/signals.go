package trail

import "strings"

// Signal is something that a version of KubeVirt says, or does, on which what is recorded depends.
type Signal struct {
	Since   string // the first version that has it
	Name    string
	Without string // what is not known, or happens, before that
	Advice  string // what to do about it; empty: nothing
}

// signals are in the order of the versions (reference: kubevirt-signals §0, §1.1, §1.2, §3).
var signals = []Signal{
	{"v1.3.0", "the annotation eviction-in-progress of pods", "the descheduler counts each eviction of a VM as failed and goes on to the next", "upgrade KubeVirt: it is older than what evictrail was made for"},
	{"v1.5.0", "an answer of its own to repeated evictions", "a second eviction of a marked VM is answered by a PodDisruptionBudget", ""},
	{"v1.6.1", "an eviction-in-progress that lasts", "it is taken off when an attempt fails: the descheduler sees a free slot and evicts the next VM", "upgrade to v1.6.1 or newer, or expect dual retry loops of path annotation_lost"},
	{"v1.7.0", "the annotation eviction-source", "no object says that the descheduler asked", "have audit events (docs/audit.md), or name the descheduler's policy"},
	{"v1.7.0", "the condition EvictionRequested", "the time of a mark is when it was seen", ""},
	{"v1.7.0", "the subresource evacuate/cancel", "an evacuation cannot be cancelled", ""},
}

// Missing lists what this version of KubeVirt does not say or do, in the order of the versions that brought it. Known is false where the
// version cannot be read.
func (s KubeVirtSettings) Missing() (missing []Signal, known bool) {
	if _, _, known = majorMinor(s.Version); !known {
		return nil, false
	}
	for _, signal := range signals {
		if olderRelease(s.Version, signal.Since) {
			missing = append(missing, signal)
		}
	}
	return missing, true
}

// MergesAborts reports whether migrations that were stuck, too slow or aborted by a user fail with the same text, so that the cause is an
// estimate (v1.9.0 and later; reference: kubevirt-signals §0).
func (s KubeVirtSettings) MergesAborts() bool {
	_, _, known := majorMinor(s.Version)
	return known && !olderRelease(s.Version, "v1.9.0")
}

// olderRelease reports whether a version is older than a release; a candidate of the release is.
func olderRelease(version, release string) bool {
	major, minor, _ := majorMinor(version)
	ofMajor, ofMinor, _ := majorMinor(release)
	if major != ofMajor || minor != ofMinor {
		return major < ofMajor || major == ofMajor && minor < ofMinor
	}
	patch, ofPatch := patchOf(version), patchOf(release)
	number, candidate, isCandidate := strings.Cut(patch, "-")
	return len(number) < len(ofPatch) || len(number) == len(ofPatch) && number < ofPatch || number == ofPatch && isCandidate && candidate != ""
}

// patchOf returns what stands behind the second dot, 0 where nothing does.
func patchOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return "0"
	}
	return parts[2]
}

// Reseeds reports whether a descheduler of this release forgets the migrations that it saw in each cycle, so that its cooldowns grow by what
// KubeVirt still has alone.
func Reseeds(version string) bool { return (&DeschedulerDetail{Version: version}).reseedsEachCycle() }
