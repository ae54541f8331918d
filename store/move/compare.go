package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// compareTries is how often a table is compared, and what differs copied again, before that is an error.
const compareTries = 3

// part is one of up to 256 parts of the rows of a table, by the first byte of a hash of the key.
type part struct {
	Number int
	Rows   int64
	Sum    string // of 64 bits of the hash of each row, in whatever order the rows are
}

// Digest is what the rows of a table amount to.
type Digest struct {
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"` // hexadecimal
}

// partNumber returns SQL for the number of the part that a row is in.
func (t *table) partNumber() string {
	key := strings.Join(append([]string{"cluster"}, t.Key...), ", ")
	return "get_byte(sha256(convert_to(ROW(" + key + ")::text, 'UTF8')), 0)"
}

// digestParts returns the parts of the rows of a cluster that have any, in the order of their numbers.
func (m *Mover) digestParts(ctx context.Context, db *pg.DB, t *table) (parts []part, err error) {
	sql := fmt.Sprintf(`
SELECT
    %s,
    count(*),
    sum(('x' || encode(substring(sha256(convert_to(ROW(%s)::text, 'UTF8')) FOR 8), 'hex'))::bit(64)::bigint)::text
FROM %s
WHERE cluster = @cluster
GROUP BY 1
ORDER BY 1`, t.partNumber(), t.columns(), t.path())
	err = runReading(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, pg.Planned, pgx.StrictNamedArgs{"cluster": m.Cluster})
		if err != nil {
			return err
		}
		parts, err = pgx.CollectRows(rows, pgx.RowToStructByPos[part])
		return err
	})
	return parts, pg.Explain("compare evictrail."+t.Name, err)
}

// digestOf returns what parts amount to.
func digestOf(parts []part) Digest {
	var d Digest
	h := sha256.New()
	for _, p := range parts {
		d.Rows += p.Rows
		_, _ = fmt.Fprintf(h, "%d %d %s\n", p.Number, p.Rows, p.Sum)
	}
	d.Digest = hex.EncodeToString(h.Sum(nil))
	return d
}

// diffParts returns the numbers of the parts that are not the same.
func diffParts(a, b []part) []int {
	var out []int
	for _, sides := range [][2][]part{{a, b}, {b, a}} {
		for _, p := range sides[0] {
			if !slices.Contains(sides[1], p) && !slices.Contains(out, p.Number) {
				out = append(out, p.Number)
			}
		}
	}
	return out
}

// compareTables makes sure that all tables have the same rows in both databases, and returns their digests. Parts that
// differ are copied again.
func (m *Mover) compareTables(ctx context.Context, all []table, did *Result) (map[string]Digest, error) {
	digests := make(map[string]Digest, len(all))
	for i := range all {
		t := &all[i]
		for try := 1; ; try++ {
			from, err := m.digestParts(ctx, m.From, t)
			if err != nil {
				return nil, err
			}
			to, err := m.digestParts(ctx, m.To, t)
			if err != nil {
				return nil, err
			}
			digests[t.Name] = digestOf(from)
			differ := diffParts(from, to)
			if len(differ) == 0 {
				m.report(Progress{Doing: "compared", Table: t.Name, Rows: digests[t.Name].Rows})
				break
			}
			if try == compareTries {
				return nil, fmt.Errorf("the rows of evictrail.%s differ: %d at the source, %d at the destination, also after they "+
					"were copied again: something goes on writing them: stop all replicas of the cluster, and run this again",
					t.Name, digests[t.Name].Rows, digestOf(to).Rows)
			}
			if err := m.copyParts(ctx, t, differ); err != nil {
				return nil, pg.Explain("copy evictrail."+t.Name+" again", err)
			}
			did.Repaired += len(differ)
		}
	}
	return digests, nil
}

// copyParts copies parts of a table again.
func (m *Mover) copyParts(ctx context.Context, t *table, parts []int) error {
	return runReading(ctx, m.From, func(from pgx.Tx) error {
		where, err := t.rowsAfter(from.Conn(), m.Cluster, nil)
		if err != nil {
			return err
		}
		numbers, err := json.Marshal(parts)
		if err != nil {
			return err
		}
		where += " AND " + t.partNumber() + " = ANY(ARRAY" + string(numbers) + ")"
		return runWriting(ctx, m.To, func(to pgx.Tx) error {
			if err := keepFactsThatCome(ctx, to, t); err != nil {
				return err
			}
			if _, err := to.Exec(ctx, "DELETE FROM "+t.path()+" WHERE "+where, pgx.QueryExecModeExec); err != nil {
				return err
			}
			n, err := t.pipe(ctx, from, to, where)
			m.report(Progress{Doing: "copied again", Table: t.Name, Rows: n})
			return err
		})
	})
}
