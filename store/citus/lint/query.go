package lint

import "strconv"

// query is a SELECT, INSERT, UPDATE or DELETE of a statement, with the one around it.
type query struct {
	*node
	outer *query
	inner []*query
	of    map[*node]*query // its inner queries by their nodes
	marks bool             // it reads an outer query's columns
}

// Kinds of entries of a range table, and commands.
//
// Source: postgres src/include/nodes/parsenodes.h (RTEKind) and nodes.h (CmdType).
const (
	rteRelation = "0"
	rteSubquery = "1"
	rteJoin     = "2"
	rteCTE      = "6"

	commandSelect  = "1"
	commandUpdate  = "2"
	commandInsert  = "3"
	commandDelete  = "4"
	commandUtility = "6"
)

// newQuery returns the query of a node, with those in it.
func newQuery(n *node, outer *query) *query {
	q := &query{node: n, outer: outer, of: map[*node]*query{}}
	for _, field := range n.fields {
		walkNodes(field, func(below *node) bool {
			if below.kind == "QUERY" {
				q.of[below] = newQuery(below, q)
				q.inner = append(q.inner, q.of[below])
				return false
			}
			if below.kind == "VAR" {
				for levels, at := below.number("varlevelsup"), q; levels > 0 && at != nil; levels-- {
					at.marks, at = true, at.outer
				}
			}
			return true
		})
	}
	return q
}

// all returns a query and those in it.
func (q *query) all() []*query {
	out := []*query{q}
	for _, in := range q.inner {
		out = append(out, in.all()...)
	}
	return out
}

// entry returns the entry of the range table with a number, from 1.
func (q *query) entry(number int) *node {
	if table := q.list("rtable"); number >= 1 && number <= len(table) {
		e, _ := table[number-1].(*node)
		return e
	}
	return nil
}

// target returns the expression of an output column, by its number.
func (q *query) target(number int) any {
	for _, item := range q.list("targetList") {
		if e, ok := item.(*node); ok && e.number("resno") == number {
			return e.fields["expr"]
		}
	}
	return nil
}

// joined returns the entries that a query reads: those of its FROM, in joins as well.
func (q *query) joined() (out []*node) {
	walkNodes(q.fields["jointree"], func(n *node) bool {
		if n.kind == "QUERY" {
			return false
		}
		if n.kind == "RANGETBLREF" {
			out = append(out, q.entry(n.number("rtindex")))
		}
		return true
	})
	return out
}

// conditions returns what must hold of each row of a query: the conjuncts of WHERE and ON.
func (q *query) conditions() (out []*node) {
	var split func(v any)
	split = func(v any) {
		n, ok := v.(*node)
		switch {
		case !ok:
		case n.kind == "BOOLEXPR" && n.text("boolop") == "and":
			for _, arg := range n.list("args") {
				split(arg)
			}
		default:
			out = append(out, n)
		}
	}
	walkNodes(q.fields["jointree"], func(n *node) bool {
		if n.kind == "FROMEXPR" || n.kind == "JOINEXPR" {
			split(n.fields["quals"])
			return true
		}
		return false
	})
	return out
}

// placement says which cluster columns of a statement are equal, and to what value.
type placement struct {
	catalogue *catalogue
	parent    map[any]any // of a union-find, whose members are entries of range tables and the texts of values
}

// newPlacement finds out what is equal in a query and those in it.
func newPlacement(c *catalogue, q *query) *placement {
	p := &placement{c, map[any]any{}}
	for _, in := range q.all() {
		for _, n := range in.conditions() {
			p.addCondition(in, n)
		}
		p.addUnion(in)
	}
	return p
}

// functionTextEquals is the function of the operator = of text.
const functionTextEquals = "texteq"

func (p *placement) addCondition(q *query, n *node) {
	switch n.kind {
	case "OPEXPR":
		if args := n.list("args"); p.catalogue.functions[n.text("opfuncid")].name == functionTextEquals && len(args) == 2 {
			p.join(p.memberOf(q, args[0]), p.memberOf(q, args[1]))
		}
	case "SUBLINK": // x.cluster IN (SELECT y.cluster ...)
		in := q.of[n.sub("subselect")]
		walkNodes(n.fields["testexpr"], func(test *node) bool {
			if test.kind == "OPEXPR" && in != nil && p.catalogue.functions[test.text("opfuncid")].name == functionTextEquals {
				args := test.list("args")
				if param, ok := args[1].(*node); ok && param.kind == "PARAM" {
					p.join(p.memberOf(q, args[0]), p.memberOf(in, in.target(param.number("paramid"))))
				}
			}
			return true
		})
	}
}

// addUnion joins the clusters of the queries of a UNION, which are columns of one number.
func (p *placement) addUnion(q *query) {
	if q.sub("setOperations") == nil {
		return
	}
	for number := 1; number <= len(q.list("targetList")); number++ {
		var first any
		walkNodes(q.fields["setOperations"], func(n *node) bool {
			if in := q.of[q.entry(n.number("rtindex")).sub("subquery")]; n.kind == "RANGETBLREF" && in != nil {
				member := p.memberOf(in, in.target(number))
				if first == nil {
					first = member
				}
				p.join(first, member)
			}
			return true
		})
	}
}

// memberOf returns what an expression is if it is the cluster of a table, which has its entry, or a value; nil where it
// is neither.
func (p *placement) memberOf(q *query, v any) any {
	n, ok := v.(*node)
	if !ok || q == nil {
		return nil
	}
	switch n.kind {
	case "RELABELTYPE":
		return p.memberOf(q, n.fields["arg"])
	case "CONST":
		return "value " + n.text("constvalue")
	case "PARAM":
		if n.text("paramkind") == "0" {
			return "parameter " + n.text("paramid")
		}
	case "VAR":
		for range n.number("varlevelsup") {
			if q = q.outer; q == nil {
				return nil
			}
		}
		return p.memberOfColumn(q, q.entry(n.number("varno")), n.number("varattno"))
	}
	return nil
}

func (p *placement) memberOfColumn(q *query, e *node, column int) any {
	switch e.text("rtekind") {
	case rteRelation:
		if t := p.catalogue.tables[e.text("relid")]; t.cluster == strconv.Itoa(column) {
			return e
		}
	case rteSubquery:
		if in := q.of[e.sub("subquery")]; in != nil {
			return p.memberOf(in, in.target(column))
		}
	case rteJoin:
		if vars := e.list("joinaliasvars"); column >= 1 && column <= len(vars) {
			return p.memberOf(q, vars[column-1])
		}
	case rteCTE:
		if in := q.findCTE(e); in != nil {
			return p.memberOf(in, in.target(column))
		}
	}
	return nil
}

// findCTE returns the query of the WITH that an entry names.
func (q *query) findCTE(e *node) *query {
	for range e.number("ctelevelsup") {
		if q = q.outer; q == nil {
			return nil
		}
	}
	for _, item := range q.list("cteList") {
		if cte, ok := item.(*node); ok && cte.text("ctename") == e.text("ctename") {
			return q.of[cte.sub("ctequery")]
		}
	}
	return nil
}

func (p *placement) root(member any) any {
	for p.parent[member] != nil && p.parent[member] != member {
		member = p.parent[member]
	}
	return member
}

// join says that two members are equal; one that is nil is nothing. A value stays the root of what it is equal to.
func (p *placement) join(a, b any) {
	if a == nil || b == nil {
		return
	}
	a, b = p.root(a), p.root(b)
	if _, isValue := a.(string); isValue {
		a, b = b, a
	}
	if a != b {
		p.parent[a] = b
	}
}

// isDistributed reports whether an entry is a table that lies on several servers.
func (p *placement) isDistributed(e *node) bool {
	return e.text("rtekind") == rteRelation && p.catalogue.tables[e.text("relid")].cluster != ""
}

// isOurs reports whether an entry is a table of evictrail.
func (p *placement) isOurs(e *node) bool {
	return e.text("rtekind") == rteRelation && p.catalogue.tables[e.text("relid")].name != ""
}

// hasValue reports whether the cluster of a table is a value that is known before.
func (p *placement) hasValue(e *node) bool {
	_, isValue := p.root(e).(string)
	return isValue
}

// distributed returns the distributed tables that a query reads, with those of the queries in it.
func (p *placement) distributed(q *query) (out []*node) {
	for _, in := range q.all() {
		for _, e := range in.joined() {
			if p.isDistributed(e) {
				out = append(out, e)
			}
		}
	}
	return out
}

// isRouted reports whether all that a query reads belongs to one cluster: then one server runs it as it is.
func (p *placement) isRouted(q *query) bool {
	tables := p.distributed(q)
	for _, e := range tables {
		if !p.hasValue(e) || p.root(e) != p.root(tables[0]) {
			return false
		}
	}
	return true
}
