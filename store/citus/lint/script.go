package lint

import (
	"regexp"
	"strings"
)

// scriptRules are those of commands that have no query: definitions, and settings.
var scriptRules = []struct {
	Rule
	broken *regexp.Regexp
}{
	{Rule: Rule{Name: "plan", Error: "could not create distributed plan", Advice: "custom plans: pg.DB.PlanOnce"}, broken: regexp.MustCompile(`(?i)\bplan_cache_mode'?\s*(=|TO|,)\s*'?force_generic_plan`)},
	{Rule: Rule{Name: "check", Error: "cannot execute ADD COLUMN command with PRIMARY KEY, UNIQUE, FOREIGN and CHECK constraints",
		Advice: "ADD COLUMN, then ADD CONSTRAINT with a name in a statement of its own"},
		broken: regexp.MustCompile(`(?is)^\s*ALTER\s+TABLE\b.*\bADD\s+(COLUMN\b[^;]*\b(CHECK|UNIQUE|REFERENCES|PRIMARY\s+KEY)\b|CHECK\b|UNIQUE\b|PRIMARY\s+KEY\b|FOREIGN\s+KEY\b|CONSTRAINT\b.*,\s*(ADD|DROP|ALTER)\b)`)},
	{Rule: Rule{Name: "drop", Error: "cannot drop multiple distributed objects in a single command", Advice: "a DROP for each"},
		broken: regexp.MustCompile(`(?is)^\s*DROP\s+(TABLE|VIEW|FUNCTION|INDEX|SEQUENCE|SCHEMA|TYPE)\b(IF|EXISTS|[\w\s."]|\([^)]*\))*,`)},
	{Rule: Rule{Name: "trigger", Error: "triggers are not supported on distributed tables", Advice: "do it where it is written"},
		broken: regexp.MustCompile(`(?is)^\s*CREATE\s+(OR\s+REPLACE\s+)?(CONSTRAINT\s+)?TRIGGER\b`)},
}

// comments matches those of SQL, where no text holds what begins one.
var comments = regexp.MustCompile(`(?m)--.*$`)

// lintText returns which rules of commands a statement breaks.
func lintText(sql string) (out []Finding) {
	bare := strings.TrimSpace(comments.ReplaceAllString(sql, ""))
	for i := range scriptRules {
		if scriptRules[i].broken.MatchString(bare) {
			out = append(out, Finding{&scriptRules[i].Rule, sql})
		}
	}
	return out
}

// SplitScript returns the statements of a script, as psql does: quotes, bodies between dollars and comments may hold
// semicolons.
func SplitScript(script string) (out []string) {
	start, end := 0, ""
	for i := 0; i < len(script); i++ {
		rest := script[i:]
		switch {
		case end != "":
			if strings.HasPrefix(rest, end) {
				i, end = i+len(end)-1, ""
			}
		case strings.HasPrefix(rest, "--"):
			end = "\n"
		case rest[0] == '\'' || rest[0] == '"':
			end = rest[:1]
		case rest[0] == '$':
			if tag := dollarTag.FindString(rest); tag != "" {
				i, end = i+len(tag)-1, tag
			}
		case rest[0] == ';':
			out = append(out, script[start:i])
			start = i + 1
		}
	}
	out = append(out, script[start:])
	kept := out[:0]
	for _, sql := range out {
		if strings.TrimSpace(comments.ReplaceAllString(sql, "")) != "" {
			kept = append(kept, sql)
		}
	}
	return kept
}

// dollarTag matches what begins a body.
var dollarTag = regexp.MustCompile(`^\$([A-Za-z_]\w*)?\$`)
