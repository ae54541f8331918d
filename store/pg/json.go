package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	fastjson "github.com/go-json-experiment/json"
	likejson "github.com/go-json-experiment/json/v1"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/evictrail/evictrail/trail"
)

// Unmarshal decodes JSON that encoding/json or Postgres wrote: keys are spelled as in the tags. It is faster than encoding/json, whose durations
// are nanoseconds.
func Unmarshal(raw []byte, v any) error {
	return fastjson.Unmarshal(raw, v, likejson.FormatDurationAsNano(true))
}

// readJSONFast has a connection read JSON by unmarshal.
func readJSONFast(_ context.Context, c *pgx.Conn) error {
	types := c.TypeMap()
	types.RegisterType(&pgtype.Type{Name: "json", OID: pgtype.JSONOID, Codec: &pgtype.JSONCodec{Marshal: json.Marshal, Unmarshal: Unmarshal}})
	types.RegisterType(&pgtype.Type{Name: "jsonb", OID: pgtype.JSONBOID, Codec: &pgtype.JSONBCodec{Marshal: json.Marshal, Unmarshal: Unmarshal}})
	return nil
}

// JSONText returns a value as JSON that a jsonb column can hold: NUL is replaced by U+FFFD. The error is trail.ErrRefused.
func JSONText(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w: %w", trail.ErrRefused, err)
	}
	return strings.ReplaceAll(string(raw), `\u0000`, `\ufffd`), nil
}
