package export

import (
	"context"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/evictrail/evictrail/store/pg"
)

// Stream writes the rows of a job to out, those of one cluster after those of another, and remembers nothing: the next
// one begins at Since again. Each row has its cluster. What was written when it ends with an error is the beginning of
// all.
func (e *Exporter) Stream(ctx context.Context, j Job, out io.Writer) (Result, error) {
	r := &run{Exporter: e, Job: j}
	var err error
	if r.encoder, err = newEncoder(j.Format, j.Dataset.columnsOf(e.Columns, true), true); err != nil {
		return Result{}, err
	}
	r.encoder.open(out)
	for _, cluster := range j.Clusters {
		if j.Dataset.Ordered {
			err = r.streamFacts(ctx, cluster)
		} else {
			err = r.streamRows(ctx, cluster)
		}
		if err != nil {
			return r.result, pg.Explain("export "+j.Dataset.Name+" of "+cluster, err)
		}
	}
	return r.result, r.encoder.close()
}

func (r *run) streamFacts(ctx context.Context, cluster string) error {
	return r.readFacts(ctx, cursor{Cluster: cluster}, func(at cursor, row []any) error {
		r.report(cluster, at.StoredAt.Format(time.DateOnly), 1)
		return r.encoder.write(row)
	})
}

// streamRows reads day by day: anyone who reads slowly holds a transaction for no longer than that.
func (r *run) streamRows(ctx context.Context, cluster string) error {
	queries := newQueries(r.Dataset, r.encoder.selection())
	days, _, err := r.listDays(ctx, queries, cluster)
	if err != nil {
		return err
	}
	for _, day := range days {
		args := pgx.StrictNamedArgs{"cluster": cluster, "since": day, "until": day.Add(aDay)}
		if day.Before(r.Since) {
			args["since"] = r.Since
		}
		if !r.Until.IsZero() && day.Add(aDay).After(r.Until) {
			args["until"] = r.Until
		}
		err := inReadTx(ctx, r.DB, func(tx pgx.Tx) error {
			return eachRow(ctx, tx, queries.rows, args, func(row []any) error {
				r.report(cluster, day.Format(time.DateOnly), 1)
				return r.encoder.write(row)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
