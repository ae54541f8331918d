package store

import (
	"context"
	"encoding/json"

	fastjson "github.com/go-json-experiment/json"
	likejson "github.com/go-json-experiment/json/v1"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// unmarshal reads JSON that encoding/json or Postgres wrote: keys are spelled as in the tags. It is faster than encoding/json, whose durations
// are nanoseconds.
func unmarshal(raw []byte, v any) error {
	return fastjson.Unmarshal(raw, v, likejson.FormatDurationAsNano(true))
}

// readJSONFast has a connection read JSON by unmarshal.
func readJSONFast(_ context.Context, c *pgx.Conn) error {
	types := c.TypeMap()
	types.RegisterType(&pgtype.Type{Name: "json", OID: pgtype.JSONOID, Codec: &pgtype.JSONCodec{Marshal: json.Marshal, Unmarshal: unmarshal}})
	types.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: unmarshal}})
	return nil
}
