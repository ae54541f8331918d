package plugins_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/api"
)

// A VM that was moved, and one in a loop; the names are those of several recordings.
const (
	movedVM      = "demo/vm-d"
	movedCluster = "b-dual-retry-loop-v1.8"
	loopVM       = "demo/nbr-2"
	heldVM       = "demo/nbr-1"
	loopCluster  = "k-blocked-slot"
)

// nowhere is an address where nothing listens.
const nowhere = "http://127.0.0.2:9"

// refusal is what the browser itself writes to its console for a status.
const refusal = "Failed to load resource"

// TestHeadlampShowsWhatTheCommandLineSays compares the panel of a VM with evictrail why and why-not, once a cluster was chosen.
func TestHeadlampShowsWhatTheCommandLineSays(t *testing.T) {
	t.Parallel()
	h := &headlamp{evictrail: incident.url, dress: lightDress}
	b := openTab(t, h.start(t), refusal)
	b.openVM(movedVM, "several")
	require.Contains(t, b.panelText(), movedVM+" is recorded in several clusters.")
	b.checkAccessibility("headlamp-several")
	b.pressButton(movedCluster)
	b.awaitOutcome("answered")
	b.requireAnswer(t, movedVM, movedCluster)
	require.Contains(t, b.panelText(), "No open loops of this VM.")
	require.Empty(t, b.linkTarget(), "no address is configured")
	require.Equal(t, "evictrail", evaluateJS[string](b, `document.querySelector("#section-evictrail h2").textContent`))
	b.checkAccessibility("headlamp-answered")
}

// TestHeadlampShowsALoop looks at a VM that is held by an open loop, on a VirtualMachineInstance's page, in dark and on a phone.
func TestHeadlampShowsALoop(t *testing.T) {
	t.Parallel()
	h := &headlamp{evictrail: incident.url, dress: darkDress}
	b := openTab(t, h.start(t), "")
	b.openPage(url.Values{"settings": {"evictrail"}})
	b.fillIn("cluster", loopCluster)
	b.fillIn("publicURL", "https://evictrail.example/below/")
	b.checkAccessibility("headlamp-settings")
	b.pressButton("Save")
	b.openPage(url.Values{"namespace": {"demo"}, "name": {"nbr-2"}, "kind": {"VirtualMachineInstance"}})
	b.awaitOutcome("answered")
	b.requireAnswer(t, loopVM, loopCluster)
	text := b.panelText()
	require.Contains(t, text, "Two controllers work against each other on worker-1: KubeVirt failed 8 times to move demo/nbr-2")
	require.NotContains(t, text, "No open loops")
	require.Equal(t, 1, strings.Count(text, "Then cancel the evacuation:"), "the same advice is given once")
	require.Equal(t, "https://evictrail.example/below/vms/demo/nbr-2?cluster="+loopCluster, b.linkTarget())
	b.checkAccessibility("headlamp-loop")
	require.NoError(t, chromedp.Do(b.ctx, setWidth(390)))
	require.Empty(t, evaluateJS[[]string](b, `[...document.querySelectorAll("[data-evictrail] *")].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML)`))
	b.checkAccessibility("headlamp-loop-phone")

	b.openVM(heldVM, "answered")
	b.requireAnswer(t, heldVM, loopCluster)
	require.Contains(t, b.panelText(), "its slot is held by demo/nbr-2")
}

// fillIn waits for a field of the settings and types into it, as React notices it.
func (b *tab) fillIn(field, text string) {
	b.Helper()
	b.awaitCondition(`document.querySelector("#evictrail-%s") !== null`, field)
	evaluateJS[bool](b, `(field => {
		Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, %q);
		return field.dispatchEvent(new Event("input", { bubbles: true }));
	})(document.querySelector("#evictrail-%s"))`, text, field)
}

// TestHeadlampWithoutAnAnswer has a VM that is not known, refusals and an evictrail that is away said plainly.
func TestHeadlampWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	h := &headlamp{evictrail: incident.url, dress: lightDress}
	host := h.start(t)
	gated := &headlamp{evictrail: startGated(t, openStore(t), api.ServerTokensAll), dress: lightDress}
	away := &headlamp{evictrail: nowhere, dress: lightDress}

	b := openTab(t, host, refusal)
	b.openVM("demo/nobody", "unknown")
	require.Contains(t, b.panelText(), "Nothing is recorded about demo/nobody.")
	b.checkAccessibility("headlamp-unknown")

	h.forbidden.Store(true)
	b.pressButton("Ask again")
	b.awaitOutcome("refused")
	require.Contains(t, b.panelText(), `The cluster refused the question (403).services "https:evictrail:443" is forbidden: User "jane" cannot get`)
	require.Contains(t, b.panelText(), "You need the right to get services/proxy of evictrail’s service.")
	b.checkAccessibility("headlamp-forbidden")

	// With --auth=kubernetes no token arrives: the API server does not hand it on.
	b = openTab(t, gated.start(t), refusal)
	b.openVM(movedVM, "refused")
	require.Contains(t, b.panelText(), "evictrail does not know who asks (401).It says: “say who you are")
	require.Contains(t, b.panelText(), "The API server does not pass your token on to services")
	b.checkAccessibility("headlamp-no-token")

	b = openTab(t, away.start(t), refusal)
	b.openVM(movedVM, "unreachable")
	require.Contains(t, b.panelText(), "evictrail cannot be reached (503).error trying to reach service: ")
	b.checkAccessibility("headlamp-unreachable")

	// Settings that name another service.
	b = openTab(t, host, refusal)
	h.forbidden.Store(false)
	b.openPage(url.Values{"settings": {"evictrail"}})
	b.fillIn("service", "other")
	b.pressButton("Save")
	b.openVM(movedVM, "unreachable")
	require.Contains(t, b.panelText(), `evictrail cannot be reached (404).services "other" not found`)
}

// TestHeadlampShowsCustomResources opens Headlamp's own view of custom resources, which has buttons of plugins and no sections.
func TestHeadlampShowsCustomResources(t *testing.T) {
	t.Parallel()
	h := &headlamp{evictrail: incident.url, dress: lightDress}
	b := openTab(t, h.start(t), refusal)
	b.openPage(url.Values{"namespace": {"demo"}, "name": {"vm-d"}, "page": {"custom"}})
	const button = `document.querySelector("#actions > [aria-label='Why does it move? (evictrail)']")`
	b.awaitCondition(button + ` !== null`)
	evaluateJS[bool](b, button+`.click() === undefined`)
	b.awaitOutcome("several")
	b.pressButton(movedCluster)
	b.awaitOutcome("answered")
	require.Equal(t, "evictrail: "+movedVM, evaluateJS[string](b, `document.querySelector("[role=dialog] h1").textContent`))
	b.requireAnswer(t, movedVM, movedCluster)
	b.checkAccessibility("headlamp-dialog")
	b.pressButton("Close")
	b.awaitCondition(`document.querySelector("[data-evictrail]") === null`)

	// Where the answer is a section, the button is not needed.
	b.openVM(movedVM, "several")
	b.awaitCondition(button + ` === null`)
}

// TestHeadlampShowsNothingElsewhere opens pages of objects that are no VMs of KubeVirt.
func TestHeadlampShowsNothingElsewhere(t *testing.T) {
	t.Parallel()
	h := &headlamp{evictrail: incident.url, dress: lightDress}
	b := openTab(t, h.start(t), "")
	for _, other := range []url.Values{
		{"kind": {"Pod"}, "apiVersion": {"v1"}},
		{"kind": {"VirtualMachine"}, "apiVersion": {"vmoperator.example/v1"}},
	} {
		other.Set("namespace", "demo")
		other.Set("name", "vm-d")
		b.openPage(other)
		b.awaitCondition(`document.querySelector("#section-evictrail") !== null`)
		require.Empty(t, evaluateJS[string](b, `document.querySelector("#section-evictrail").textContent + document.querySelector("#actions").textContent`))
	}
}

// printedFact is a line of evidence, as the command line prints it: when, what, and the ID of the fact.
var printedFact = regexp.MustCompile(`(?m)^  (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  (.+?)  \[[0-9a-f-]{36}\]$`)

// requireAnswer compares the panel with the command line: each line of the brief answer, the facts that it rests on, its rules, and
// why the VM does not move.
func (b *tab) requireAnswer(t *testing.T, vm, cluster string) {
	t.Helper()
	why, lines := askCommandLine(t, "why", vm, cluster)
	require.NotEmpty(t, lines["Status"], why)
	shown := evaluateJS[map[string]string](b, `Object.fromEntries([...document.querySelectorAll("[data-evictrail] dt")].map(dt => [dt.textContent, dt.nextElementSibling.textContent]))`)
	require.Equal(t, lines, shown)
	text := b.panelText()
	var facts []string
	for _, m := range printedFact.FindAllStringSubmatch(why, -1) {
		facts = append(facts, m[1]+"Z "+joinWords(m[2]))
	}
	require.NotEmpty(t, facts, why)
	require.Equal(t, facts, evaluateJS[[]string](b, `[...document.querySelectorAll("[data-evictrail] li:has(time)")].map(li => li.textContent)`))
	_, rules, _ := strings.Cut(joinWords(why), "Rules: ")
	require.Contains(t, text, "Rules: "+rules)

	whyNot, _ := askCommandLine(t, "why-not", vm, cluster)
	_, paragraph, _ := strings.Cut(whyNot, "\n") // the first line is the moment
	paragraph, _, _ = strings.Cut(paragraph, "\n\n")
	require.Contains(t, text, joinWords(paragraph))
}
