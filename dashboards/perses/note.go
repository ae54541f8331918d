package perses

import (
	"fmt"
	"strings"
)

// newNote says what Grafana shows in a row, too.
func newNote(key string, left []grafanaPanel, publicURL string) drawn {
	var out strings.Builder
	out.WriteString("Not shown here, as it is asked of Postgres or Loki. Grafana's dashboard has it")
	if publicURL == "" {
		out.WriteString(", and evictrail's pages have most of it:\n\n")
	} else {
		_, _ = fmt.Fprintf(&out, ", and [evictrail's pages](%s) have most of it:\n\n", publicURL)
	}
	for _, p := range left {
		_, _ = fmt.Fprintf(&out, "- **%s**: %s\n", p.Title, p.Description)
	}
	spec := text{strings.TrimSpace(out.String())}
	return drawn{key, newPanel("More in Grafana", "", Plugin{"Markdown", spec}, nil), gridWidth, 3 + 2*len(left)}
}
