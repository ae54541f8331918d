package trail

import (
	"fmt"
	"strings"
	"time"
)

// formatRequester names the requester as people say it.
func (r *EvictionRequest) formatRequester() string {
	return formatRequester(r.Requester, r.Impersonator, r.RequesterClass)
}

// byWhom names who asked for the migration, after the word by, with what sort of program that is where it is none that a person uses; empty where unknown.
func (m Migration) byWhom() string {
	if m.Requester == "" || !m.RequesterClass.isController() {
		return formatByUser(m.Requester, m.Impersonator)
	}
	return " by " + formatRequester(m.Requester, m.Impersonator, m.RequesterClass)
}

// formatByUser names a user, and who acted as that user, after the word by; empty where nobody is known.
func formatByUser(user, impersonator string) string {
	if user == "" {
		return ""
	}
	return " by " + formatRequester(user, impersonator, RequesterOther)
}

// describeReason quotes the stated reason, where one was stated, and names the source that alone reported the request, where it is not the audit log.
func (r *EvictionRequest) describeReason() string {
	text := ""
	if reason := strings.TrimSpace(r.StatedReason); reason != "" {
		text = fmt.Sprintf(", saying %q", reason)
	}
	if r.Source == string(SourceAdmission) {
		text += ", reported by the eviction observer alone"
	}
	return text
}

// renderSentence describes one request.
func (r *EvictionRequest) renderSentence() string {
	dry := ""
	if r.DryRun {
		dry = " as a dry run"
	}
	return fmt.Sprintf("%s asked to evict pod %s%s%s: %s.", capitalizeRequester(r.formatRequester()), r.Pod, dry, r.describeReason(), r.describeOutcome())
}

// repeatSentence returns the repetitions of a request; r is the first of them.
func (r *EvictionRequest) repeatSentence(head *request) string {
	often := ""
	if head.Repeats > 1 {
		often = head.describeRepeats()
	}
	return fmt.Sprintf("%s asked again%s: %s.", capitalizeRequester(r.formatRequester()), often, r.describeOutcome())
}

// describeRepeats says how often a request was repeated, and until when.
func (r *EvictionRequest) describeRepeats() string {
	if r.Repeats == 1 {
		return " at " + FormatClock(r.LastRepeatAt)
	}
	return fmt.Sprintf(", %d times until %s", r.Repeats, FormatClock(r.LastRepeatAt))
}

// describeOutcome says what became of the request.
func (r *EvictionRequest) describeOutcome() string {
	switch r.Answer {
	case AnswerMarked:
		if r.DryRun {
			return "KubeVirt would mark it to be moved"
		}
		return "KubeVirt accepted to move it"
	case AnswerAlreadyMarked:
		return "it is already to be moved, nothing changed"
	case AnswerNotMigratable:
		return "refused, as it cannot be live-migrated"
	case AnswerTargetPod:
		return "refused, as the pod is the target of a migration"
	case AnswerPDB:
		return "refused by a PodDisruptionBudget"
	case AnswerNotFound:
		return "the pod was gone"
	case AnswerError:
		return strings.TrimSpace(fmt.Sprintf("it failed%s %s", codeText(r.AnswerCode), r.AnswerText))
	case AnswerUnknown:
		return "the answer was not seen"
	case AnswerAllowed:
		if r.DryRun {
			return "it would be allowed"
		}
		if r.Effect == EffectShutdown {
			return "allowed, and the pod held the guest: the VM is shut down, not moved"
		}
		if r.Effect == EffectNone {
			return "allowed; the pod had ended before, the VM was not touched"
		}
		return "allowed"
	}
	return string(r.Answer)
}

func nonEmpty(text []string) []string {
	out := text[:0]
	for _, t := range text {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

// FormatCount writes a number with its noun, whose plural ends in s.
func FormatCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// capitalizeRequester writes a requester at the beginning of a sentence: the name of a user stays as it is.
func capitalizeRequester(who string) string {
	if strings.HasPrefix(who, "the ") || strings.HasPrefix(who, "an ") {
		return UpperFirst(who)
	}
	return who
}

// UpperFirst returns a text with a large first letter; an empty one stays so.
func UpperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// FormatClock writes a time as people say it in an incident: to the second, UTC.
func FormatClock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// formatSpan writes a duration to the second; negative ones, which skewed clocks make, as 0s.
func formatSpan(d time.Duration) string { return max(d, 0).Round(time.Second).String() }
