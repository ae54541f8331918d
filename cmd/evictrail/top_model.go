package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// topModel is what top shows and how it answers to keys. Its screen follows from its fields alone.
type topModel struct {
	load  func() (incidents, error)
	ask   func(incident) (string, error)
	every time.Duration

	on     terminal
	found  incidents
	at     time.Time // of the last look
	err    error     // of the last look; what is shown is from the one before
	order  string
	filter string
	typing bool // the filter is being typed
	chosen int  // index among those that are shown
	why    *topAnswer
	over   bool // q was pressed
}

// topAnswer is the answer that covers the list.
type topAnswer struct {
	about incident
	text  string // empty until it is there
	err   error
	top   int // the first line that is shown
}

// topMessage is what the model learns: a look at what is open, that the time for one has come, an answer, a key, or the size of the terminal.
type topMessage interface{ applyTo(m *topModel) topTask }

// topTask is what is done beside the screen, and returns what the model learns then; nil: nothing.
type topTask func() topMessage

// The messages of top, apart from keys.
type (
	topLoaded struct {
		found incidents
		at    time.Time
		err   error
	}
	topDue      struct{}
	topAnswered struct {
		about incident
		text  string
		err   error
	}
	topResized struct{ width, height int }
)

func newTopModel(first incidents, order string, every time.Duration, on terminal) *topModel {
	return &topModel{every: every, on: on, found: first, at: nowUTC(), order: order}
}

// waitForLook returns the task that waits for the next look.
func (m *topModel) waitForLook() topMessage {
	time.Sleep(m.every)
	return topDue{}
}

func (topDue) applyTo(m *topModel) topTask {
	return func() topMessage {
		found, err := m.load()
		return topLoaded{found, nowUTC(), err}
	}
}

func (l topLoaded) applyTo(m *topModel) topTask {
	m.takeLook(l)
	return m.waitForLook
}

func (a topAnswered) applyTo(m *topModel) topTask {
	if m.why != nil && m.why.about.key() == a.about.key() {
		m.why.text, m.why.err = a.text, a.err
	}
	return nil
}

//nolint:unparam // as topMessage has it
func (r topResized) applyTo(m *topModel) topTask {
	m.on.width, m.on.height = r.width, r.height
	return nil
}

// takeLook shows another look; the same incident stays selected.
func (m *topModel) takeLook(look topLoaded) {
	if m.err = look.err; look.err != nil {
		return
	}
	m.changeList(func() { m.found, m.at = look.found, look.at })
}

// changeList changes what is listed; the same incident stays selected where it is still there.
func (m *topModel) changeList(change func()) {
	key := ""
	if shown := m.listShown(); m.chosen < len(shown) {
		key = shown[m.chosen].key()
	}
	change()
	shown := m.listShown()
	if i := slices.IndexFunc(shown, func(i incident) bool { return i.key() == key }); i >= 0 {
		m.chosen = i
	}
	m.chosen = max(min(m.chosen, len(shown)-1), 0)
}

// listShown returns the incidents that pass the filter, in the order chosen.
func (m *topModel) listShown() []incident {
	shown := filterIncidents(m.found.all, m.filter)
	sortIncidents(shown, m.order)
	return shown
}

// applyTo does what a key stands for.
func (k topKey) applyTo(m *topModel) topTask {
	switch {
	case k == keyCtrlC:
		m.over = true
		return nil
	case m.typing:
		m.typeFilter(k)
		return nil
	case m.why != nil:
		m.scrollAnswer(k)
		return nil
	}
	return m.pressKey(k)
}

// pressKey takes a key while the list is shown.
func (m *topModel) pressKey(key topKey) topTask {
	switch key {
	case "q":
		m.over = true
	case keyEsc:
		if m.filter == "" {
			m.over = true
		}
		m.changeList(func() { m.filter = "" })
	case keyUp, "k":
		m.chosen = max(m.chosen-1, 0)
	case keyDown, "j":
		m.chosen = max(min(m.chosen+1, len(m.listShown())-1), 0)
	case keyHome, "g":
		m.chosen = 0
	case keyEnd, "G":
		m.chosen = max(len(m.listShown())-1, 0)
	case "o":
		m.changeList(func() { m.order = sortOrders[(slices.Index(sortOrders, m.order)+1)%len(sortOrders)] })
	case "/":
		m.typing = true
	case keyCtrlC, keyBackspace, keyLeft, keyPageUp, keyPageDown: // nothing
	case keyEnter:
		if shown := m.listShown(); m.chosen < len(shown) {
			about := shown[m.chosen]
			m.why = &topAnswer{about: about}
			return func() topMessage {
				text, err := m.ask(about)
				return topAnswered{about, text, err}
			}
		}
	}
	return nil
}

// mostTyped bounds the filter.
const mostTyped = 100

// typeFilter takes a key while the filter is typed.
func (m *topModel) typeFilter(key topKey) {
	m.changeList(func() {
		switch {
		case key == keyEnter:
			m.typing = false
		case key == keyEsc:
			m.typing, m.filter = false, ""
		case key == keyBackspace:
			_, last := utf8.DecodeLastRuneInString(m.filter)
			m.filter = m.filter[:len(m.filter)-last]
		case utf8.RuneCountInString(string(key)) == 1 && len(m.filter) < mostTyped:
			m.filter += cleanText(string(key))
		}
	})
}

// scrollAnswer takes a key while an answer is shown.
func (m *topModel) scrollAnswer(key topKey) {
	page := max(m.on.height-3, 1)
	switch key {
	case "q", keyEsc, keyEnter, keyBackspace, keyLeft, "h":
		m.why = nil
		return
	case keyUp, "k":
		m.why.top--
	case keyDown, "j":
		m.why.top++
	case keyPageUp, "b":
		m.why.top -= page
	case keyPageDown, " ":
		m.why.top += page
	case keyHome, "g":
		m.why.top = 0
	case keyEnd, "G":
		m.why.top = len(m.answerLines())
	case keyCtrlC: // it ends before this
	}
	m.why.top = max(min(m.why.top, len(m.answerLines())-page), 0)
}

// answerLines returns the lines of the answer at the width of the terminal. Lines that can be pasted keep their indent.
func (m *topModel) answerLines() []string {
	width := max(min(m.on.width, 100), 20)
	switch {
	case m.why.err != nil:
		return foldText(cleanText(m.why.err.Error()), width)
	case m.why.text == "":
		return []string{"Looking ..."}
	}
	var lines []string
	for line := range strings.SplitSeq(m.why.text, "\n") {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		for _, folded := range foldText(cleanText(strings.TrimLeft(line, " ")), width-len(indent)) {
			lines = append(lines, indent+folded)
		}
	}
	return lines
}

// renderScreen returns the lines of the screen.
func (m *topModel) renderScreen() string {
	if m.why != nil {
		return m.viewAnswer()
	}
	return m.viewList()
}

func (m *topModel) viewAnswer() string {
	name := m.why.about.vm
	if name == "" {
		name = m.why.about.node
	}
	lines := m.answerLines()
	end := min(m.why.top+max(m.on.height-3, 1), len(lines))
	title := m.style(styleOpen, m.fit(fmt.Sprintf("%s in %s: %s", cleanText(name), cleanText(m.why.about.cluster), m.why.about.label)))
	return m.fill([]string{title, ""}, lines[min(m.why.top, end):end], "q back  up/down scroll")
}

func (m *topModel) viewList() string {
	shown := m.listShown()
	head := []string{m.style(styleOpen, m.fit(m.at.Format("15:04:05Z")+"  "+m.found.describeSum()))}
	if m.err != nil {
		head = append(head, m.style(styleProblem, m.fit("evictrail: "+cleanText(m.err.Error())+": shown is what was there before")))
	}
	if m.found.behind != "" {
		head = append(head, m.fit(m.found.behind))
	}
	for i, notice := range m.found.notices {
		if i == 2 && len(m.found.notices) > 3 {
			head = append(head, m.fit(fmt.Sprintf("and %d more clusters are not recorded as they should be", len(m.found.notices)-i)))
			break
		}
		head = append(head, m.style(styleProblem, m.fit(cleanText(notice))))
	}
	table := newIncidentTable(shown)
	text, _ := table.render(max(m.on.width-len("> "), 1), false)
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	head = append(head, "", m.fit("  "+rows[0]))
	rows = rows[1:]
	room := max(m.on.height-len(head)-1, 1)
	first := max(min(m.chosen-room/2, len(rows)-room), 0)
	var body []string
	for i := first; i < min(first+room, len(rows)); i++ {
		style, mark := table.rows[i].style, "  "
		if i == m.chosen {
			style, mark = styleChosen, "> "
		}
		body = append(body, m.style(style, m.fit(mark+rows[i])))
	}
	keys := "q quit  up/down select  Enter why  / filter  o sort: " + m.order
	switch {
	case m.typing:
		keys = "/" + m.filter + "_   Enter keeps, Esc clears"
	case m.filter != "":
		keys = fmt.Sprintf("%d of %d with %q (Esc clears)  ", len(shown), len(m.found.all), m.filter) + keys
	}
	return m.fill(head, body, keys)
}

// fill returns a screen: the keys stand in its last line.
func (m *topModel) fill(head, body []string, keys string) string {
	lines := slices.Concat(head, body)
	for len(lines) < m.on.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, m.style(styleDim, m.fit(keys))), "\n")
}

// fit cuts a line to the width of the terminal.
func (m *topModel) fit(line string) string { return cutText(line, max(m.on.width, 1)) }

func (m *topModel) style(s textStyle, line string) string {
	if !m.on.color {
		return line
	}
	return s.applyTo(line)
}
