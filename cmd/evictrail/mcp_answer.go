package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The bounds of what an assistant is answered: it reads all of it, and pays for each word.
const (
	mostAnswerText  = 48 << 10 // bytes
	mostAnswerData  = 64 << 10 // bytes
	mostAnswerPages = 20
)

// toolAnswer is what a tool answers.
type toolAnswer struct {
	text     string          // what the command prints
	data     json.RawMessage // what it prints for programs
	notes    []string        // what else there is to know: what is not recorded, and what was left out
	nextPage string          // of a list: the argument page for what is older; empty where nothing is
	pages    []answerPage
}

// answerPage is a page that shows the same to people, or what an answer rests on.
type answerPage struct {
	Title string `json:"title"`
	URL   string `json:"url"` // below that of the site, until newResult completes it
}

// newToolAnswer returns an answer in words and, as an object, for programs.
func newToolAnswer(text string, data any) (toolAnswer, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(data)
	return toolAnswer{text: text, data: bytes.TrimSpace(b.Bytes())}, err
}

// isTooLarge reports whether an answer is larger than an assistant should read.
func (a toolAnswer) isTooLarge() bool {
	return len(a.text) > mostAnswerText || len(a.data) > mostAnswerData
}

// fitAnswer builds an answer of so many parts, of fewer where it is too large, and returns how many it has.
func fitAnswer(parts int, build func(parts int) (toolAnswer, error)) (toolAnswer, int, error) {
	for {
		a, err := build(parts)
		if err != nil || parts <= 1 || !a.isTooLarge() {
			return a, parts, err
		}
		parts /= 2
	}
}

// addCutNote says that an answer has not all parts, and how to see the others.
func (a *toolAnswer) addCutNote(shown, all int, what, otherwise string) {
	if shown < all {
		a.notes = append(a.notes, fmt.Sprintf("Left out: %d of %d %s. %s", all-shown, all, what, otherwise))
	}
}

// addMissing says whose part is missing in what a hub answered, as far as the answer does not say so.
func (a *toolAnswer) addMissing(texts []string) {
	for _, text := range texts {
		if !slices.ContainsFunc(a.notes, func(note string) bool { return strings.Contains(note, text) }) {
			a.notes = append(a.notes, text+" What is shown is incomplete.")
		}
	}
}

// addPage names a page that shows the same; an empty address is none.
func (a *toolAnswer) addPage(title, address string) {
	if address != "" && len(a.pages) < mostAnswerPages {
		a.pages = append(a.pages, answerPage{title, address})
	}
}

// newResult returns the answer as the protocol has it: the words of the command, then notes and pages, and all of it as
// one object. What is still too large is cut off, and said to be.
func (a toolAnswer) newResult(site string) *mcp.CallToolResult {
	if len(a.text) > mostAnswerText {
		end := strings.LastIndexByte(a.text[:mostAnswerText], '\n') + 1
		a.notes = append(
			a.notes,
			fmt.Sprintf("The text is cut off after %d of %d bytes: ask for less, such as one VM.", end, len(a.text)),
		)
		a.text = a.text[:end]
	}
	if len(a.data) > mostAnswerData {
		a.notes = append(
			a.notes,
			fmt.Sprintf("The structured answer of %d bytes is left out: ask for less, such as one VM.", len(a.data)),
		)
		a.data = nil
	}
	if site == "" {
		a.pages = nil
	}
	for i := range a.pages {
		a.pages[i].URL = strings.TrimRight(site, "/") + a.pages[i].URL
	}
	content := []mcp.Content{&mcp.TextContent{Text: a.text}}
	if more := a.renderMore(); more != "" {
		content = append(content, &mcp.TextContent{Text: more})
	}
	return &mcp.CallToolResult{Content: content, StructuredContent: struct {
		Answer   json.RawMessage `json:"answer,omitempty"`
		Notes    []string        `json:"notes,omitempty"`
		NextPage string          `json:"next_page,omitempty"`
		Pages    []answerPage    `json:"pages,omitempty"`
	}{a.data, a.notes, a.nextPage, a.pages}}
}

// renderMore returns in words what an answer has beside its text.
func (a toolAnswer) renderMore() string {
	var b strings.Builder
	for _, note := range a.notes {
		b.WriteString("Note: " + note + "\n")
	}
	if a.nextPage != "" {
		b.WriteString("next_page: " + a.nextPage + "\n")
	}
	for _, page := range a.pages {
		b.WriteString(page.Title + ": " + page.URL + "\n")
	}
	return b.String()
}
