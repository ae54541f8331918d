package lint

import (
	"fmt"
	"strings"
)

// node is one node of a query tree as Postgres prints it: {KIND :field value ...}.
type node struct {
	kind   string
	fields map[string]any // a *node, a []any of a list, or the tokens of a scalar as one string
}

// parseTree reads the text of a query tree.
//
// Source: postgres src/backend/nodes/outfuncs.c and read.c.
func parseTree(text string) (any, error) {
	p := &treeParser{text: text}
	v, err := p.parseValue()
	if err == nil && p.peek() != "" {
		err = fmt.Errorf("query tree: %q after its end", p.peek())
	}
	return v, err
}

type treeParser struct {
	text string
	at   int
}

// next returns the next token and moves behind it; empty at the end.
func (p *treeParser) next() string {
	token, end := p.scanToken()
	p.at = end
	return token
}

// peek returns the next token.
func (p *treeParser) peek() string {
	token, _ := p.scanToken()
	return token
}

func (p *treeParser) scanToken() (string, int) {
	i := p.at
	for i < len(p.text) && strings.IndexByte(" \n\t", p.text[i]) >= 0 {
		i++
	}
	if i == len(p.text) {
		return "", i
	}
	if strings.IndexByte("(){}", p.text[i]) >= 0 {
		return p.text[i : i+1], i + 1
	}
	start := i
	for i < len(p.text) && strings.IndexByte(" \n\t(){}", p.text[i]) < 0 {
		if p.text[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(p.text))
	return p.text[start:i], i
}

// parseValue reads a node, a list or one token.
func (p *treeParser) parseValue() (any, error) {
	switch token := p.next(); token {
	case "":
		return nil, fmt.Errorf("query tree ends early")
	case "{":
		return p.parseNode()
	case "(":
		list := []any{}
		for p.peek() != ")" {
			v, err := p.parseValue()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		p.next()
		return list, nil
	default:
		return token, nil
	}
}

// parseNode reads a node after its brace. A scalar may be of several tokens, as the bytes of a constant are.
func (p *treeParser) parseNode() (*node, error) {
	n := &node{kind: p.next(), fields: map[string]any{}}
	for {
		switch label := p.next(); {
		case label == "}":
			return n, nil
		case !strings.HasPrefix(label, ":"):
			return nil, fmt.Errorf("query tree: %q in a %s: expected a field", label, n.kind)
		default:
			v, err := p.parseField()
			if err != nil {
				return nil, err
			}
			n.fields[label[1:]] = v
		}
	}
}

// parseField reads what a field has, up to the next one or to the end of its node.
func (p *treeParser) parseField() (any, error) {
	if token := p.peek(); token == "{" || token == "(" {
		return p.parseValue()
	}
	var tokens []string
	for {
		token := p.peek()
		if token == "" || token == "}" || strings.HasPrefix(token, ":") {
			return strings.Join(tokens, " "), nil
		}
		tokens = append(tokens, p.next())
	}
}

// sub returns a field that is a node; nil where it is none.
func (n *node) sub(field string) *node {
	if n == nil {
		return nil
	}
	v, _ := n.fields[field].(*node)
	return v
}

// list returns a field that is a list.
func (n *node) list(field string) []any {
	if n == nil {
		return nil
	}
	v, _ := n.fields[field].([]any)
	return v
}

// text returns a field that is a scalar; empty where it is NULL.
func (n *node) text(field string) string {
	if n == nil {
		return ""
	}
	v, _ := n.fields[field].(string)
	if v == "<>" {
		return ""
	}
	return strings.ReplaceAll(v, `\`, "")
}

// number returns a field that is a number.
func (n *node) number(field string) int {
	var v int
	_, _ = fmt.Sscan(n.text(field), &v)
	return v
}

// isTrue reports whether a field is true.
func (n *node) isTrue(field string) bool { return n.text(field) == "true" }

// walkNodes calls visit for each node in a value, parents first. Where visit returns false it goes no deeper.
func walkNodes(v any, visit func(*node) bool) {
	switch v := v.(type) {
	case *node:
		if v == nil || !visit(v) {
			return
		}
		for _, field := range v.fields {
			walkNodes(field, visit)
		}
	case []any:
		for _, item := range v {
			walkNodes(item, visit)
		}
	}
}
