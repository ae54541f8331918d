package citus

import "fmt"

// first is the table whose shards those of all others lie beside: each cluster has a row in it for each subject.
const first = "subjects"

// Sequential has a transaction send what it does to other servers by one connection each: else Citus refuses to define
// what it has read or written before in the same transaction. A plain Postgres ignores it.
const Sequential = `SET LOCAL citus.multi_shard_modify_mode = 'sequential'`

// PlanDistribution returns the statements that spread tables over so many shards, in order: first what all others lie
// beside, then the facts and rows, then the few that every server has whole, then the functions that queries call
// there. Tables that are spread already are not among those that it is called with; beside then says that the first one
// is.
func PlanDistribution(tables []Table, functions []string, shards int, beside bool) []string {
	out := []string{Sequential}
	if !beside {
		out = append(out, fmt.Sprintf("SELECT create_distributed_table(%s, 'cluster', colocate_with => 'none', shard_count => %d)", quoteTable(first), shards))
	}
	for _, t := range tables {
		if !t.Reference && t.Name != first {
			out = append(out, fmt.Sprintf("SELECT create_distributed_table(%s, 'cluster', colocate_with => %s)", quoteTable(t.Name), quoteTable(first)))
		}
	}
	for _, t := range tables {
		if t.Reference {
			out = append(out, fmt.Sprintf("SELECT create_reference_table(%s)", quoteTable(t.Name)))
		}
	}
	for _, f := range functions {
		out = append(out, fmt.Sprintf("SELECT create_distributed_function('%s')", f))
	}
	return out
}

// PlanReturn returns the statements that bring tables back to the server that is asked, in order: the first one last,
// as all others lie beside it; none where no table is spread.
func PlanReturn(tables []string) []string {
	if len(tables) == 0 {
		return nil
	}
	out := []string{Sequential}
	for _, name := range tables {
		if name != first {
			out = append(out, fmt.Sprintf("SELECT undistribute_table(%s)", quoteTable(name)))
		}
	}
	return append(out, fmt.Sprintf("SELECT undistribute_table(%s)", quoteTable(first)))
}

// quoteTable returns the name of a table of evictrail as a text of SQL. Those names are lower-case words.
func quoteTable(table string) string { return "'evictrail." + table + "'" }
