package lint

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/citus"
)

// catalogue is what rules need of a database: its tables, and how stable functions are.
type catalogue struct {
	tables    map[string]table // by OID
	functions map[string]function
	types     map[string]typed
}

// table is a table as Citus would have it.
type table struct {
	name    string
	cluster string // number of the column by which it is distributed; empty: it is a reference table
}

type function struct {
	name       string
	volatility string // i, s or v
}

// typed holds the functions that read and write the text of a type.
type typed struct{ input, output string }

const (
	relationsQuery = `
SELECT c.oid::text, coalesce(p.relname, c.relname), coalesce(a.attnum::text, '')
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = c.oid
LEFT JOIN pg_catalog.pg_class AS p ON p.oid = i.inhparent
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'cluster' AND NOT a.attisdropped
WHERE c.relnamespace = 'evictrail'::regnamespace
  AND c.relkind IN ('r', 'p')`
	functionsQuery = `
SELECT oid::text, proname, provolatile::text
FROM pg_catalog.pg_proc`
	typesQuery = `
SELECT oid::text, typinput::oid::text, typoutput::oid::text
FROM pg_catalog.pg_type`
)

func loadCatalogue(ctx context.Context, conn *pgx.Conn) (catalogue, error) {
	c := catalogue{tables: map[string]table{}, functions: map[string]function{}, types: map[string]typed{}}
	placed, err := citus.Tables(ctx, conn)
	if err != nil {
		return c, err
	}
	reference := map[string]bool{}
	for _, t := range placed {
		reference[t.Name] = t.Reference
	}
	err = collectTriples(ctx, conn, relationsQuery, func(oid, name, cluster string) {
		isReference, isPlaced := reference[name]
		if isReference {
			cluster = ""
		}
		if isPlaced {
			c.tables[oid] = table{name, cluster}
		}
	})
	if err != nil {
		return c, err
	}
	if err := collectTriples(ctx, conn, functionsQuery, func(oid, name, volatility string) {
		c.functions[oid] = function{name, volatility}
	}); err != nil {
		return c, err
	}
	return c, collectTriples(ctx, conn, typesQuery, func(oid, input, output string) { c.types[oid] = typed{input, output} })
}

// collectTriples calls add for each row of a query with three texts.
func collectTriples(ctx context.Context, conn *pgx.Conn, sql string, add func(a, b, c string)) error {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	var a, b, c string
	_, err = pgx.ForEachRow(rows, []any{&a, &b, &c}, func() error { add(a, b, c); return nil })
	return errors.Join(err, rows.Err())
}

// Volatilities of functions, as pg_proc has them.
const (
	stable   = "s"
	volatile = "v"
)

// resultTypes are the fields in which expressions say of which type they are.
var resultTypes = []string{
	"vartype", "consttype", "paramtype", "funcresulttype", "opresulttype", "resulttype", "row_typeid", "casetype", "coalescetype",
	"array_typeid", "aggtype", "minmaxtype", "refrestype", "wintype", "type",
}

// calls returns the OIDs of the functions that a node calls itself. A cast by text calls those of both types.
func (c *catalogue) calls(n *node) []string {
	switch n.kind {
	case "FUNCEXPR":
		return []string{n.text("funcid")}
	case "OPEXPR", "DISTINCTEXPR", "NULLIFEXPR", "SCALARARRAYOPEXPR":
		return []string{n.text("opfuncid")}
	case "AGGREF":
		return []string{n.text("aggfnoid")}
	case "WINDOWFUNC":
		return []string{n.text("winfnoid")}
	case "COERCEVIAIO":
		out := []string{c.types[n.text("resulttype")].input}
		for _, field := range resultTypes {
			if oid := n.sub("arg").text(field); oid != "" {
				return append(out, c.types[oid].output)
			}
		}
		return out
	}
	return nil
}

// volatilityOf returns how stable a node is, without those below it.
func (c *catalogue) volatilityOf(n *node) string {
	switch n.kind {
	case "SQLVALUEFUNCTION", "CURRENTOFEXPR":
		return stable
	case "NEXTVALUEEXPR":
		return volatile
	}
	worst := ""
	for _, oid := range c.calls(n) {
		switch c.functions[oid].volatility {
		case volatile:
			return volatile
		case stable:
			worst = stable
		}
	}
	return worst
}

// holds reports whether a node in a value, or below, is as volatile as one of some volatilities.
func (c *catalogue) holds(v any, volatilities ...string) (found bool) {
	walkNodes(v, func(n *node) bool {
		of := c.volatilityOf(n)
		for _, one := range volatilities {
			found = found || of == one
		}
		return !found
	})
	return found
}

// callsAny reports whether a value calls one of some functions.
func (c *catalogue) callsAny(v any, names []string) (found bool) {
	walkNodes(v, func(n *node) bool {
		for _, oid := range c.calls(n) {
			found = found || slices.Contains(names, c.functions[oid].name)
		}
		return !found
	})
	return found
}
