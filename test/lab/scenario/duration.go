package scenario

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as Go writes it: 90s, 2m.
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("duration %s: expected a text as 90s", raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return fmt.Errorf("duration %q: expected a text as 90s", text)
	}
	*d = Duration(parsed)
	return nil
}
