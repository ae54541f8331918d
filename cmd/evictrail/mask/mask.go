package mask

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Hidden stands where a secret was.
const Hidden = "xxxxx"

// named finds the name of a secret, with what separates it from the value.
const named = `(?i)((?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|private[_-]?key)\\?["']?\s*[:=]\s*`

// patterns find secrets by what stands around them, which stays.
var patterns = []struct {
	secret *regexp.Regexp
	with   string
}{
	// A private key; the beginning or the end of one, where the text was cut.
	{
		regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`),
		"${1}" + Hidden + "${2}",
	},
	{regexp.MustCompile(`(?s)\A[^-]*(-----END [A-Z ]*PRIVATE KEY-----)`), Hidden + "${1}"},
	// A password in a URL. One that begins with a digit has no slash: that would be a port, and a path.
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#@"']*:)[^\s/?#"']*@`), "${1}" + Hidden + "@"},
	{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#@"']*:)[^\s/"'0-9][^\s"']*@`), "${1}" + Hidden + "@"},
	// The path of the observer, which ends with a secret.
	{regexp.MustCompile(`(/admission/)[^\s/?"'\\]+`), "${1}" + Hidden},
	// Tokens, by their headers and by how they look: those of Kubernetes and of OpenShift.
	{regexp.MustCompile(`(?i)(authorization\\?["']?\s*[:=]\s*[\["'\\]*(?:[a-z]+\s+)?)[^\s"'\\\]]+`), "${1}" + Hidden},
	{regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Hidden},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), Hidden},
	{regexp.MustCompile(`\bsha256~[A-Za-z0-9_-]{20,}`), "sha256~" + Hidden},
	// A value that has the name of a secret: in JSON that is in a string, in quotes, or bare.
	{regexp.MustCompile(named + `\\")[^"\\]*(\\")`), "${1}" + Hidden + "${2}"},
	{regexp.MustCompile(named + `")(?:[^"\\]|\\.)*(")`), "${1}" + Hidden + "${2}"},
	{regexp.MustCompile(named + `')(?:[^'\\]|\\.)*(')`), "${1}" + Hidden + "${2}"},
	{regexp.MustCompile(named + `)[^\s&"'\\]+`), "${1}" + Hidden},
	// The same after a colon: that is no URL, in which an ampersand ends it.
	{regexp.MustCompile(strings.Replace(named, "[:=]", ":", 1) + `)[^\s"'\\]+`), "${1}" + Hidden},
}

// Text returns a text without the secrets in it that show by what stands around them. What it hides once it hides again
// in the same way.
func Text(text string) string {
	for _, p := range patterns {
		text = p.secret.ReplaceAllString(text, p.with)
	}
	return text
}

// Masker hides secrets that are known, beside those that Text finds.
type Masker struct{ known *strings.Replacer }

// shortest is the least that a known secret has, in bytes: shorter ones are parts of ordinary words.
const shortest = 6

// New returns a masker that knows secrets. Those of less than six bytes are left to Text.
func New(secrets []string) *Masker {
	var forms []string
	for _, secret := range secrets {
		if len(secret) < shortest {
			continue
		}
		quoted, _ := json.Marshal(secret)
		forms = append(forms, secret, url.QueryEscape(secret), url.PathEscape(secret),
			url.UserPassword("", secret).String()[1:],
			strings.Trim(string(quoted), `"`), base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, Hidden)
	}
	return &Masker{strings.NewReplacer(pairs...)}
}

// Mask returns a text without secrets.
func (m *Masker) Mask(text string) string { return Text(m.known.Replace(text)) }
