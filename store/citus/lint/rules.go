package lint

import "strings"

// Rule is one rule: what Citus says where it is broken, and how to keep it.
type Rule struct {
	Name   string
	Error  string // of Citus; empty where it runs, and answers something else
	Advice string
	breaks func(*statement) bool
}

// statement is a statement as rules see it.
type statement struct {
	*placement
	top *query
}

// Rules of queries. Their names are those of docs/citus.md.
var Rules = []Rule{
	{"returning", "non-IMMUTABLE functions are not allowed in the RETURNING clause", "compute it in Go, or return the columns themselves", inWrites(breaksReturning)},
	{"case", "non-IMMUTABLE functions are not allowed in CASE or COALESCE statements", "compute it in Go and pass it on as a parameter", inWrites(breaksCase)},
	{"columns", "a column definition list is required for functions returning \"record\"", "SELECT 1", breaksColumns},
	{"recursive", "recursive CTEs are only supported when they contain a filter on the distribution column", "a number of joins", breaksRecursive},
	{"ctid", "Recursively planned distributed modifications with ctid on where clause are not supported.", "add cluster = @cluster to the WHERE of the DELETE or UPDATE", inWrites(breaksTID)},
	{"volatile", "functions used in UPDATE queries on distributed tables must not be VOLATILE", "compute it before, and pass it on as a parameter", inWrites(breaksVolatile)},
	{"stable", "STABLE functions used in UPDATE queries cannot be called with column references", "compute it before, and pass it on as a parameter", inWrites(breaksStable)},
	{"conflict", "functions used in the DO UPDATE SET clause of INSERTs on distributed tables must be marked IMMUTABLE", "use excluded.column, which may have a default", inWrites(breaksConflict)},
	{"insert", "subqueries are not supported within INSERT queries", "INSERT ... SELECT", inWrites(breaksInsert)},
	{"lateral", "complex joins are only supported when all distributed tables are co-located and joined on their distribution columns", "compare cluster in each join, LATERAL and subquery", breaksLateral},
	{"outer", "cannot perform a lateral outer join when a distributed subquery references a set returning function", "read the table before, and join what was read", breaksOuter},
	{"row", "", "columns by name, or a LIMIT: a whole row of a view has columns f1, f2, ...", breaksRow},
	{"size", "", "citus_total_relation_size on Citus: the table here is empty, its rows are in shards", breaksSize},
	{"lock", "could not run distributed query with FOR UPDATE/SHARE commands", "add cluster = @cluster", breaksLock},
}

// inWrites is a rule for each INSERT, UPDATE and DELETE of our tables.
func inWrites(breaks func(*statement, *query) bool) func(*statement) bool {
	return func(s *statement) bool {
		for _, q := range s.top.all() {
			if q.text("commandType") != commandSelect && s.isOurs(q.entry(q.number("resultRelation"))) && breaks(s, q) {
				return true
			}
		}
		return false
	}
}

func breaksReturning(s *statement, q *query) bool {
	return s.catalogue.holds(q.fields["returningList"], stable, volatile)
}

// changedValues returns the values that an UPDATE sets, and the condition of what it or a DELETE changes.
func changedValues(q *query) []any {
	values := []any{q.sub("jointree").fields["quals"]}
	if q.text("commandType") == commandUpdate {
		for _, item := range q.list("targetList") {
			if e, ok := item.(*node); ok && !e.isTrue("resjunk") {
				values = append(values, e.fields["expr"])
			}
		}
	}
	return values
}

func breaksCase(s *statement, q *query) (broken bool) {
	walkNodes(changedValues(q), func(n *node) bool {
		if n.kind == "COALESCEEXPR" || n.kind == "COALESCE" || n.kind == "CASEEXPR" || n.kind == "CASE" {
			broken = broken || s.catalogue.holds(n, stable, volatile)
			return false
		}
		return n.kind != "QUERY"
	})
	return broken
}

// breaksStable looks for stable functions of columns, but for those within CASE and COALESCE, which another rule is
// about.
func breaksStable(s *statement, q *query) (broken bool) {
	walkNodes(changedValues(q), func(n *node) bool {
		switch n.kind {
		case "COALESCEEXPR", "COALESCE", "CASEEXPR", "CASE", "QUERY":
			return false
		}
		if s.catalogue.volatilityOf(n) == stable {
			walkNodes(n, func(below *node) bool {
				broken = broken || below.kind == "VAR"
				return below.kind != "QUERY"
			})
		}
		return true
	})
	return broken
}

// breaksVolatile looks anywhere in an UPDATE or a DELETE: also in what it is joined with.
func breaksVolatile(s *statement, q *query) bool {
	return q.text("commandType") != commandInsert && s.catalogue.holds(q.node, volatile)
}

func breaksConflict(s *statement, q *query) (broken bool) {
	conflict := q.sub("onConflict")
	if conflict == nil {
		return false
	}
	for _, item := range conflict.list("onConflictSet") {
		if e, ok := item.(*node); ok && !e.isTrue("resjunk") {
			broken = broken || s.catalogue.holds(e.fields["expr"], stable, volatile)
		}
	}
	return broken || s.catalogue.holds(conflict.fields["onConflictWhere"], stable, volatile)
}

// breaksInsert looks for subqueries among the values of an INSERT; those that it selects from are in its range table.
func breaksInsert(_ *statement, q *query) bool {
	return q.text("commandType") == commandInsert && q.isTrue("hasSubLinks")
}

// typeTID is the type of ctid.
const typeTID = "27"

func breaksTID(s *statement, q *query) bool {
	target := q.entry(q.number("resultRelation"))
	byTID := false
	walkNodes(q.sub("jointree").fields["quals"], func(n *node) bool {
		byTID = byTID || n.kind == "VAR" && n.text("vartype") == typeTID
		return n.kind != "QUERY"
	})
	return byTID && s.isDistributed(target) && !s.hasValue(target)
}

func breaksColumns(s *statement) bool {
	for _, q := range s.top.all()[1:] {
		if q.text("commandType") != commandSelect || len(q.list("targetList")) > 0 {
			continue
		}
		for _, in := range q.all() {
			for _, e := range in.joined() {
				if s.isOurs(e) {
					return true
				}
			}
		}
	}
	return false
}

func breaksRecursive(s *statement) bool {
	for _, q := range s.top.all() {
		if q.isTrue("hasRecursive") && len(s.distributed(q)) > 0 && !s.isRouted(s.top) {
			return true
		}
	}
	return false
}

// breaksLateral looks for tables that are read together and not for the same cluster: in one FROM, or in a subquery and
// around it.
func breaksLateral(s *statement) bool {
	for _, q := range s.top.all() {
		var first *node
		for _, e := range q.joined() {
			if !s.isDistributed(e) {
				continue
			}
			if first != nil && s.root(e) != s.root(first) {
				return true
			}
			first = e
		}
		if !q.marks || q.outer == nil {
			continue
		}
		around := map[any]bool{}
		for at := q.outer; at != nil; at = at.outer {
			for _, e := range at.joined() {
				for _, table := range s.tablesOf(at, e) {
					around[s.root(table)] = true
				}
			}
		}
		for _, e := range q.joined() {
			for _, table := range s.tablesOf(q, e) {
				if len(around) > 0 && !around[s.root(table)] && !s.hasValue(table) {
					return true
				}
			}
		}
	}
	return false
}

// tablesOf returns the distributed tables of an entry: itself, or those of its query.
func (s *statement) tablesOf(q *query, e *node) []*node {
	if s.isDistributed(e) {
		return []*node{e}
	}
	in := q.of[e.sub("subquery")]
	if e.text("rtekind") == rteCTE {
		in = q.findCTE(e)
	}
	if in == nil || in.marks {
		return nil
	}
	return s.distributed(in)
}

// breaksOuter looks for subqueries of distributed tables that refer to a FROM in which no distributed table is.
func breaksOuter(s *statement) bool {
	if s.isRouted(s.top) {
		return false
	}
	for _, q := range s.top.all() {
		if !q.marks || q.outer == nil || len(s.distributed(q)) == 0 {
			continue
		}
		found, read := false, q.outer.joined()
		for _, e := range read {
			found = found || e.sub("subquery") != q.node && len(s.tablesOf(q.outer, e)) > 0
		}
		if !found && len(read) > 0 && q.outer.outer == nil {
			return true
		}
	}
	return false
}

// breaksRow looks for whole rows of subqueries, which views are.
func breaksRow(s *statement) (broken bool) {
	for _, q := range s.top.all() {
		if q.text("limitCount") != "" || q.sub("limitCount") != nil || s.isRouted(s.top) {
			continue
		}
		walkNodes(q.fields["targetList"], func(n *node) bool {
			if n.kind == "VAR" && n.text("varattno") == "0" && n.text("varlevelsup") == "0" {
				e := q.entry(n.number("varno"))
				broken = broken || e.text("rtekind") == rteSubquery && len(s.tablesOf(q, e)) > 0
			}
			return n.kind != "QUERY"
		})
	}
	return broken
}

// sizes are functions that see the table of the coordinator alone.
var sizes = []string{"pg_total_relation_size", "pg_relation_size", "pg_table_size", "pg_indexes_size"}

func breaksSize(s *statement) bool {
	return s.catalogue.callsAny(s.top.node, sizes) && !s.catalogue.callsAny(s.top.node, []string{"citus_total_relation_size"})
}

func breaksLock(s *statement) bool {
	for _, q := range s.top.all() {
		if len(q.list("rowMarks")) > 0 && len(s.distributed(q)) > 0 && !s.isRouted(q) {
			return true
		}
	}
	return false
}

// Finding is a rule that a text breaks.
type Finding struct {
	Rule *Rule
	SQL  string
}

// String returns the rule, what Citus would say, and the beginning of the statement.
func (f Finding) String() string {
	text := strings.Join(strings.Fields(f.SQL), " ")
	if len(text) > 400 {
		text = text[:400] + "..."
	}
	said := f.Rule.Error
	if said == "" {
		said = "it answers something else"
	}
	return f.Rule.Name + ": " + said + " (" + f.Rule.Advice + "): " + text
}
