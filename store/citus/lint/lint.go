package lint

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Linter judges statements by the query trees that a plain Postgres makes of them. It is not safe for concurrent use.
type Linter struct {
	conn      *pgx.Conn
	catalogue catalogue
	trees     []string // that the server sent last
}

// New returns a linter on a database that has the schema. Anyone who calls it closes the linter.
func New(ctx context.Context, url string) (*Linter, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	l := &Linter{}
	config.RuntimeParams["debug_print_rewritten"] = "on" // views are replaced by their queries in it, as in what Citus plans
	config.RuntimeParams["debug_pretty_print"] = "off"
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Message == "rewritten parse tree:" {
			l.trees = append(l.trees, n.Detail)
		}
	}
	if l.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	l.catalogue, err = loadCatalogue(ctx, l.conn)
	if err == nil {
		_, err = l.conn.Exec(ctx, "SET client_min_messages = log") // trees are messages
	}
	return l, errors.Join(err, ctx.Err())
}

// Close closes the connection.
func (l *Linter) Close(ctx context.Context) error { return l.conn.Close(ctx) }

// parsed matches commands of which Postgres makes a query tree before they run.
var parsed = regexp.MustCompile(`(?is)^\s*(--[^\n]*\n\s*)*(SELECT|INSERT|UPDATE|DELETE|WITH|VALUES|MERGE|TABLE)\b`)

// Lint returns which rules a statement breaks, once each. It is parsed, not run; its parameters are $1, $2, ... The
// error says that Postgres refuses it.
func (l *Linter) Lint(ctx context.Context, sql string) ([]Finding, error) {
	out := lintText(sql)
	if !parsed.MatchString(sql) {
		return out, nil
	}
	l.trees = nil
	if _, err := l.conn.PgConn().Prepare(ctx, "", sql, nil); err != nil {
		return nil, fmt.Errorf("%w: %s", err, sql)
	}
	if len(l.trees) == 0 {
		return nil, fmt.Errorf("the server sent no query tree: %s", sql)
	}
	found, err := l.judge(sql)
	return append(out, found...), err
}

// LintNested runs a statement in a transaction that is rolled back, and returns which rules it breaks, or what the
// functions run that it calls.
func (l *Linter) LintNested(ctx context.Context, sql string) ([]Finding, error) {
	tx, err := l.conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	l.trees = nil
	_, err = tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err = errors.Join(err, tx.Rollback(ctx)); err != nil {
		return nil, err
	}
	return l.judge(sql)
}

// judge returns which rules the trees break that were sent.
func (l *Linter) judge(sql string) (out []Finding, err error) {
	broken := map[string]bool{}
	for _, text := range l.trees {
		tree, err := parseTree(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, sql)
		}
		walkNodes(tree, func(n *node) bool {
			if n.kind != "QUERY" || n.text("commandType") == commandUtility {
				return n.kind != "QUERY"
			}
			top := newQuery(n, nil)
			s := &statement{newPlacement(&l.catalogue, top), top}
			for i := range Rules {
				if !broken[Rules[i].Name] && Rules[i].breaks(s) {
					broken[Rules[i].Name] = true
					out = append(out, Finding{&Rules[i], sql})
				}
			}
			return false
		})
	}
	return out, nil
}
