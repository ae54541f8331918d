package collector

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	dto "github.com/prometheus/client_model/go"

	"github.com/evictrail/evictrail/trail"
	"github.com/evictrail/evictrail/trail/tracker"
)

// Redactor replaces names by pseudonyms: the same name by the same pseudonym, wherever it stands, so that the story stays the same.
// Pseudonyms are made with a random key that is never stored: who has them cannot even try out names. It is safe for concurrent use.
//
// What stands in a field of names is always replaced. In what people and programs wrote, each word is replaced but for those that
// are known to be none of yours: of the texts that something is concluded from, and of words.txt. What is not known is hidden.
type Redactor struct {
	key       [32]byte
	SourceIPs bool // leave the addresses of requests as they are, instead of leaving them out
}

// NewRedactor makes a redactor with a key of its own.
func NewRedactor() *Redactor {
	r := &Redactor{}
	_, _ = rand.Read(r.key[:]) // it never fails
	return r
}

//go:embed words.txt
var wordList string

// words are the words that are no names, in lower case.
var words = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(wordList) {
		if !strings.HasPrefix(line, "#") {
			for _, word := range strings.Fields(line) {
				out[word] = true
			}
		}
	}
	for _, text := range slices.Concat(trail.KnownTexts(), tracker.EventReasons()) {
		for _, token := range token.FindAllString(text, -1) {
			for _, part := range splitWord(token) {
				out[strings.ToLower(part)] = true
			}
			out[strings.ToLower(token)] = true
		}
	}
	return out
})

var (
	uuid   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	plain  = regexp.MustCompile(`^\d{1,6}(\.\d{1,6})?([kKMGTPE]i?)?$|^(\d{1,6}(\.\d+)?(ns|us|ms|s|m|h|d))+$|^v\d+(\.\d+){0,2}((alpha|beta|rc)\.?\d*)?$`) // numbers, durations, sizes, releases
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`)
	token  = regexp.MustCompile(`[\p{L}\p{N}](?:[\p{L}\p{N}._@-]*[\p{L}\p{N}])?`)

	// piece is what may be a name in a text: something in quotes, an address with colons, NAMESPACE/NAME, or a word; and a time, which is none.
	piece = regexp.MustCompile(moment.String() + `|"[^"\s]+"|(?:[0-9a-fA-F]{0,4}:){2,}[0-9a-fA-F.]*|[\p{L}\p{N}._@-]+(?:/[\p{L}\p{N}._@-]+)+|` + token.String())
)

// rules say what is done with the strings of a field, by the field's name; the strings of other fields are texts.
var rules = map[string]func(*Redactor, string) string{
	"name": (*Redactor).Name, "namespace": (*Redactor).Name, "nodeName": (*Redactor).Name, "vmiName": (*Redactor).Name,
	"evacuationNodeName": (*Redactor).Name, "sourceNode": (*Redactor).Name, "targetNode": (*Redactor).Name, "sourcePod": (*Redactor).Name,
	"targetPod": (*Redactor).Name, "migrationPolicyName": (*Redactor).Name, "migrationID": (*Redactor).Name, "uid": (*Redactor).Name, "auditID": (*Redactor).Name,
	"kubevirt.io/domain": (*Redactor).Name, "kubevirt.io/created-by": (*Redactor).Name, "kubevirt.io/migrationJobUID": (*Redactor).Name,
	"kubevirt.io/migrationJobName": (*Redactor).Name, "kubevirt.io/evacuationMigration": (*Redactor).Name,
	"kubevirt.io/workloadUpdateMigration": (*Redactor).Name, "kubevirt.io/volume-update-migration": (*Redactor).Name,
	"requester":    (*Redactor).Name, // of an EvictionRequest: in an Eviction the field is called name
	fieldSourceIPs: asItIs,
	"username":     (*Redactor).redactUser, "groups": (*Redactor).redactUser, "userAgent": (*Redactor).redactWords,
	"requestURI": func(_ *Redactor, uri string) string {
		if isDryRun(uri) {
			return "/?dryRun=All"
		}
		return "/"
	},
	"key": (*Redactor).redactWords, "nodeDrainTaintKey": (*Redactor).redactWords, // of taints
	"value":      (*Redactor).Name,
	"apiVersion": asItIs, "kind": asItIs, "resourceVersion": asItIs, "observedKubeVirtVersion": asItIs,
	"featureGates": asItIs, "disabledFeatureGates": asItIs, "workloadUpdateMethods": asItIs, "batchEvictionInterval": asItIs, "bandwidthPerMigration": asItIs,
}

// fieldSourceIPs is the field of an audit event with the addresses from which was asked.
const fieldSourceIPs = "sourceIPs"

func asItIs(_ *Redactor, s string) string { return s }

// Value replaces what stands in a JSON value, which it changes, and returns it.
func (r *Redactor) Value(v any) any { return r.redactValue("", v) }

func (r *Redactor) redactValue(field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if slices.Contains(selectors, field) {
			return r.redactSelector(v)
		}
		for key, value := range v {
			if key == fieldSourceIPs && !r.SourceIPs {
				delete(v, key)
				continue
			}
			v[key] = r.redactValue(key, value)
		}
	case []any:
		for i := range v {
			v[i] = r.redactValue(field, v[i])
		}
	case string:
		if rule := rules[field]; rule != nil {
			return rule(r, v)
		}
		return r.Text(v)
	}
	return v
}

// selectors are the fields of labels, whose names are replaced as well as their values.
var selectors = []string{"addedNodeSelector", "namespaceSelector", "virtualMachineInstanceSelector"}

func (r *Redactor) redactSelector(labels map[string]any) any {
	out := map[string]any{}
	for key, value := range labels {
		out[r.redactWords(key)] = r.redactValue("value", value)
	}
	return out
}

// redactTexts replaces what stands in a JSON value of which no field holds names alone.
func (r *Redactor) redactTexts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = r.redactTexts(value)
		}
	case []any:
		for i := range v {
			v[i] = r.redactTexts(v[i])
		}
	case string:
		return r.redactWords(v)
	}
	return v
}

// revealingPrefixes are the beginnings of names that say what the object is for. Those of virt-launcher pods, and of the migrations that KubeVirt makes.
var telling = []string{"virt-launcher-", "kubevirt-evacuation-", "kubevirt-workload-update-", "kubevirt-migrate-vm-", "hp-volume-"}

// Name returns the pseudonym of a name. A UUID becomes a UUID; of NAMESPACE/NAME each is replaced.
func (r *Redactor) Name(s string) string {
	switch {
	case s == "", s == "true", s == "false", s == trail.ImperativeEvictor:
		return s
	case uuid.MatchString(s):
		return r.redactUUID(s)
	case strings.Contains(s, "/"):
		parts := strings.Split(s, "/")
		for i := range parts {
			parts[i] = r.Name(parts[i])
		}
		return strings.Join(parts, "/")
	}
	for _, prefix := range telling {
		if rest, is := strings.CutPrefix(s, prefix); is && rest != "" {
			return prefix + r.computePseudonym(rest)
		}
	}
	return r.computePseudonym(s)
}

// redactUser returns the pseudonym of a user or group. Kubernetes' own keep their names, and so do service accounts under which projects are installed by what they
// ship: they are nobody's, and say what sort of program asks. KubeVirt's keep theirs in whatever namespace, which has the pseudonym that its CR's has.
func (r *Redactor) redactUser(s string) string {
	if account, is := strings.CutPrefix(s, "system:serviceaccount:"); is {
		namespace, name, _ := strings.Cut(account, ":")
		switch {
		case trail.KnownAccount(s) || s == "system:serviceaccount:kube-system:node-controller":
			return s
		case !slices.Contains(ownNames, name):
			name = r.Name(name)
		}
		return "system:serviceaccount:" + r.Name(namespace) + ":" + name
	}
	for _, prefix := range []string{"system:serviceaccounts:", "system:node:"} {
		if rest, is := strings.CutPrefix(s, prefix); is && rest != "kube-system" {
			return prefix + r.Name(rest)
		}
	}
	if strings.HasPrefix(s, "system:") {
		return s
	}
	return r.Name(s)
}

// ownNames are the names of service accounts that stay in whatever namespace: those that change nodes and never cordon one, and KubeVirt's others.
var ownNames = append([]string{"kubevirt-operator"}, heartbeats...)

// Text replaces the names in a text.
func (r *Redactor) Text(s string) string {
	return piece.ReplaceAllStringFunc(s, func(p string) string {
		inner, isQuoted := strings.CutPrefix(p, `"`)
		switch inner = strings.TrimSuffix(inner, `"`); {
		case moment.MatchString(p):
		case isQuoted && strings.Contains(inner, ":"):
			p = `"` + r.redactUser(inner) + `"`
		case isQuoted && (strings.ContainsFunc(inner, unicode.IsUpper) || words()[p]):
			p = `"` + r.redactWords(inner) + `"`
		case isQuoted:
			p = `"` + r.Name(inner) + `"`
		case strings.Contains(p, "/"):
			p = r.redactPair(p)
		default:
			p = r.redactWord(p)
		}
		return p
	})
}

// redactPair replaces NAMESPACE/NAME, unless it is known as something else: a label, a profile and its plugin, words.
func (r *Redactor) redactPair(s string) string {
	before, _, _ := strings.Cut(s, "/")
	known := words()[strings.ToLower(s)] || strings.ContainsFunc(before, unicode.IsUpper) || strings.Contains(before, ".") && words()[before]
	if known {
		return r.redactWords(s)
	}
	return r.Name(strings.Trim(s, "._-"))
}

// redactWords replaces the words of a text one by one.
func (r *Redactor) redactWords(s string) string { return token.ReplaceAllStringFunc(s, r.redactWord) }

// redactWord replaces a word unless it is known to be no name.
func (r *Redactor) redactWord(s string) string {
	if plain.MatchString(s) || words()[strings.ToLower(s)] {
		return s
	}
	unknown := func(part string) bool { return !words()[strings.ToLower(part)] && !plain.MatchString(part) }
	if strings.ContainsFunc(s, isWordJoint) && !slices.ContainsFunc(splitWord(s), unknown) {
		return s
	}
	return r.Name(s)
}

// isWordJoint returns what stands in no name of an object: a capital or an underscore, with which words are made of several.
func isWordJoint(r rune) bool { return unicode.IsUpper(r) || r == '_' }

// splitWord cuts a word of several, such as MigrateToURI3 or migration_in_progress, where one begins.
func splitWord(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, "_") {
		out = append(out, splitCamelCase(part)...)
	}
	return out
}

func splitCamelCase(s string) []string {
	var parts []string
	begin := 0
	runes := []rune(s)
	for i := 1; i < len(runes); i++ {
		upper := unicode.IsUpper(runes[i])
		starts := upper && !unicode.IsUpper(runes[i-1]) || upper && i+1 < len(runes) && unicode.IsLower(runes[i+1]) ||
			unicode.IsDigit(runes[i]) != unicode.IsDigit(runes[i-1])
		if starts {
			parts = append(parts, string(runes[begin:i]))
			begin = i
		}
	}
	return append(parts, string(runes[begin:]))
}

// nameLabels are the labels of metrics that hold names.
var nameLabels = []string{"node", "namespace", "exported_namespace", "pod", "exported_pod", "instance", "service", "endpoint", "job", "container"}

// redactMetrics replaces the names in the labels of metrics.
func (r *Redactor) redactMetrics(family *dto.MetricFamily) {
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			value := r.redactWords(l.GetValue())
			switch {
			case family.GetName() == familyBuild:
				continue
			case slices.Contains(nameLabels, l.GetName()):
				value = r.Name(l.GetValue())
			}
			l.Value = &value
		}
	}
}

func (r *Redactor) computeHMAC(s string) []byte {
	h := hmac.New(sha256.New, r.key[:])
	_, _ = h.Write([]byte(s))
	return h.Sum(nil)
}

// computePseudonym returns three words of five letters that can be said aloud: 48 bits, so that a hundred thousand names have as many pseudonyms.
// A word is five letters, of which the second and the fourth are vowels (proquints, arXiv 0901.4016).
func (r *Redactor) computePseudonym(s string) string {
	const consonants, vowels = "bdfghjklmnprstvz", "aiou"
	sum := r.computeHMAC(s)
	parts := make([]string, 3)
	for i := range parts {
		n := binary.BigEndian.Uint16(sum[2*i:])
		parts[i] = string([]byte{consonants[n>>12], vowels[n>>10&3], consonants[n>>6&15], vowels[n>>4&3], consonants[n&15]})
	}
	return strings.Join(parts, "-")
}

// redactUUID returns the pseudonym of a UUID: another UUID.
func (r *Redactor) redactUUID(s string) string {
	sum := r.computeHMAC(strings.ToLower(s))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	text := hex.EncodeToString(sum[:16])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}
