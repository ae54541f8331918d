package main

import (
	"slices"
	"strings"
	"unicode"

	eastasian "golang.org/x/text/width"
)

// textTable is a table for people: it is fitted to the width of a terminal.
type textTable struct {
	columns  []tableColumn
	rows     []tableRow
	maxLines int // that a cell is folded into before its rest is cut off
}

// tableColumn is a column of a textTable.
type tableColumn struct {
	head  string
	prose bool // it holds sentences, which are folded first
	minor int  // where there is no room, the column with the highest is left out first; 0: it never is
}

// tableRow is a row of a textTable.
type tableRow struct {
	cells []string
	style textStyle
}

// noValue stands for NULL and for nothing.
const noValue = "-"

const (
	columnGap  = 2
	proseLeast = 24 // a sentence in less is not legible
	cellLeast  = 6  // a name is not cut into less
)

// render returns the lines of the table, no longer than the width (0: of any length), and the heads of the columns that had no room. A cell that does not fit is
// folded, between words where that helps; what does not fit into maxLines is cut off.
func (t textTable) render(width int, color bool) (lines string, leftOut []string) {
	shown, widths := t.fit(width)
	var out strings.Builder
	head := make([]string, len(t.columns))
	for i, c := range t.columns {
		head[i] = c.head
		if !slices.Contains(shown, i) {
			leftOut = append(leftOut, c.head)
		}
	}
	out.WriteString(t.renderRow(head, shown, widths))
	for _, row := range t.rows {
		text := t.renderRow(row.cells, shown, widths)
		if color {
			text = row.style.applyTo(text)
		}
		out.WriteString(text)
	}
	return out.String(), leftOut
}

// renderRow returns the lines of one row.
func (t textTable) renderRow(cells []string, shown, widths []int) string {
	folded := make([][]string, len(shown))
	height := 1
	for i, column := range shown {
		if t.maxLines == 1 {
			folded[i] = []string{cutText(cells[column], widths[i])}
			continue
		}
		folded[i] = foldText(cells[column], widths[i])
		if n := t.maxLines; n > 0 && len(folded[i]) > n {
			folded[i] = append(folded[i][:n-1:n-1], cutText(strings.Join(folded[i][n-1:], " "), widths[i]))
		}
		height = max(height, len(folded[i]))
	}
	var out strings.Builder
	for y := range height {
		line, column := "", 0
		for i := range shown {
			if y < len(folded[i]) && folded[i][y] != "" {
				line += strings.Repeat(" ", max(column-textWidth(line), 0)) + folded[i][y]
			}
			column += widths[i] + columnGap
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// fit chooses the columns that have room, and how wide each is. It first breaks heads and sentences; then, beside sentences, which make a row high anyway, whatever
// has spaces; then it leaves out columns, empty ones first; at last it breaks names.
func (t textTable) fit(width int) (shown, widths []int) {
	minors := make([]int, len(t.columns))
	for i, column := range t.columns {
		shown = append(shown, i)
		minors[i] = column.minor
		if column.minor > 0 && t.isEmpty(i) {
			minors[i] += len(t.columns)
		}
	}
	for {
		natural, heads, words := t.measure(shown)
		if t.maxLines == 1 {
			words = heads
		}
		levels := [][]int{natural, heads}
		if slices.ContainsFunc(shown, func(i int) bool { return t.columns[i].prose }) {
			levels = append(levels, words)
		}
		for _, least := range levels {
			if width <= 0 || lineWidthOf(least) <= width {
				return shown, t.widen(shown, least, natural, width)
			}
		}
		minor := slices.MaxFunc(shown, func(a, b int) int { return minors[a] - minors[b] })
		if minors[minor] == 0 {
			return shown, shrinkColumns(words, width)
		}
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == minor })
	}
}

// isEmpty reports whether a column says nothing in any row.
func (t textTable) isEmpty(column int) bool {
	return !slices.ContainsFunc(t.rows, func(row tableRow) bool { return row.cells[column] != noValue })
}

// measure returns how wide the columns are where nothing is folded; where heads are, and sentences; and where everything is.
func (t textTable) measure(shown []int) (natural, heads, words []int) {
	for _, i := range shown {
		column := t.columns[i]
		cells, cellWords := 0, 0
		for _, row := range t.rows {
			cells, cellWords = max(cells, textWidth(row.cells[i])), max(cellWords, widestWord(row.cells[i]))
		}
		natural = append(natural, max(textWidth(column.head), cells))
		if column.prose {
			cells = min(cells, proseLeast)
			cellWords = cells
		}
		head := widestWord(column.head)
		heads = append(heads, max(head, cells))
		words = append(words, max(head, cellWords))
	}
	return natural, heads, words
}

// widen hands the room that is left to the columns: first to sentences, then to the others from the left.
func (t textTable) widen(shown, least, natural []int, width int) []int {
	widths := slices.Clone(least)
	spare := width - lineWidthOf(widths)
	for _, prose := range []bool{true, false} {
		for i, column := range shown {
			if t.columns[column].prose == prose && width > 0 {
				more := min(spare, natural[i]-widths[i])
				widths[i], spare = widths[i]+more, spare-more
			}
		}
	}
	return widths
}

// shrinkColumns takes from the widest columns until a line fits, or nothing can be taken any more.
func shrinkColumns(widths []int, width int) []int {
	widths = slices.Clone(widths)
	for lineWidthOf(widths) > width {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= cellLeast {
			break
		}
		widths[widest]--
	}
	return widths
}

// lineWidthOf returns how long a line is whose columns are that wide.
func lineWidthOf(widths []int) int {
	sum := columnGap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

func widestWord(text string) int {
	widest := 0
	for word := range strings.FieldsSeq(text) {
		widest = max(widest, textWidth(word))
	}
	return widest
}

// foldText breaks a text into lines that are no wider than that: between words, and within a word that is wider itself.
func foldText(text string, width int) []string {
	if textWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(text) {
		wide := textWidth(word)
		if used > 0 && used+1+wide <= width {
			line, used = line+" "+word, used+1+wide
			continue
		}
		if used > 0 {
			lines = append(lines, line)
		}
		for wide > width {
			begin := beginOf(word, width)
			lines = append(lines, begin)
			word = word[len(begin):]
			wide = textWidth(word)
		}
		line, used = word, wide
	}
	if used > 0 {
		lines = append(lines, line)
	}
	return lines
}

// beginOf returns as much of the beginning of a text as is no wider than that, and one character at least.
func beginOf(text string, width int) string {
	used := 0
	for i, r := range text {
		if used += runeWidth(r); used > width && i > 0 {
			return text[:i]
		}
	}
	return text
}

// textWidth returns how many columns of a terminal a text takes.
func textWidth(text string) int {
	sum := 0
	for _, r := range text {
		sum += runeWidth(r)
	}
	return sum
}

// runeWidth returns how many columns a character takes: two where Unicode says wide, none where it stands above the one before.
func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	case eastasian.Neutral, eastasian.EastAsianAmbiguous, eastasian.EastAsianNarrow, eastasian.EastAsianHalfwidth:
	}
	return 1
}

// cutText returns a text that is no wider than that, with a mark where its rest was cut off.
func cutText(text string, width int) string {
	if textWidth(text) <= width {
		return text
	}
	return strings.TrimRight(beginOf(text, max(width-1, 1)), " ") + "…"
}
