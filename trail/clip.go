package trail

import "strings"

// clipped is at the end of a text of which the rest was cut off.
const clipped = "…"

// ClipText cuts a text to at most n bytes, at the end of a rune, and marks that it did.
func ClipText(text string, n int) string {
	switch {
	case len(text) <= n:
		return text
	case n < len(clipped):
		return ""
	}
	return strings.ToValidUTF8(text[:n-len(clipped)], "") + clipped
}
