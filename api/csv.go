package api

import (
	"encoding/csv"
	"io"
	"regexp"
	"strings"

	"github.com/evictrail/evictrail/trail"
)

// csvAbout says of tables what SpreadsheetCell does.
const csvAbout = "A text that a spreadsheet would take for a formula, as it begins with =, +, -, @, a tab or a line break, has an apostrophe before it; numbers have none."

// WriteCSV writes a table with its head; NULL as nothing.
func WriteCSV(out io.Writer, t trail.Table) error {
	w := csv.NewWriter(out)
	if err := w.Write(t.Columns); err != nil {
		return err
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cell != nil {
				cells[i] = SpreadsheetCell(*cell)
			}
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// formula matches what spreadsheets take for a formula, also behind the apostrophes that SpreadsheetCell has put before it: so the way
// back is unambiguous. number matches numbers and durations of Postgres without a unit, which can hold no formula.
var (
	formula = regexp.MustCompile(`^'*[=+\-@\t\r\n]`)
	number  = regexp.MustCompile(`^[+-]?[0-9][0-9:.]*(e[+-]?[0-9]+)?$`)
)

// SpreadsheetCell returns a cell of CSV that no spreadsheet runs: an apostrophe stands before what it would take for a formula. What
// requesters, agents and objects say of themselves arrives in cells, and anyone who opens the file trusts it.
func SpreadsheetCell(text string) string {
	if formula.MatchString(text) && !number.MatchString(text) {
		return "'" + text
	}
	return text
}

// CellText returns the text of a cell that SpreadsheetCell wrote.
func CellText(cell string) string {
	if rest, quoted := strings.CutPrefix(cell, "'"); quoted && formula.MatchString(rest) {
		return rest
	}
	return cell
}
