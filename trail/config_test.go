package trail

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCooldownSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		in      CooldownSettings
		inForce CooldownSettings
		wrong   string
	}{
		{"nothing is the default", CooldownSettings{}, CooldownSettings{15 * time.Minute, 6 * time.Hour, 48 * time.Hour}, ""},
		{"all", CooldownSettings{time.Minute, time.Hour, 2 * time.Hour}, CooldownSettings{time.Minute, time.Hour, 2 * time.Hour}, ""},
		{"a base above the default cap", CooldownSettings{Base: 8 * time.Hour}, CooldownSettings{8 * time.Hour, 6 * time.Hour, 48 * time.Hour}, ""},
		{"a cap below the default base", CooldownSettings{Max: time.Minute}, CooldownSettings{15 * time.Minute, time.Minute, 48 * time.Hour}, ""},
		{name: "negative base", in: CooldownSettings{Base: -time.Second}, wrong: "migrationCooldown must be non-negative, got -1s"},
		{name: "negative cap", in: CooldownSettings{Max: -time.Second}, wrong: "maxMigrationCooldown must be non-negative, got -1s"},
		{name: "negative window", in: CooldownSettings{Window: -time.Second}, wrong: "migrationHistoryWindow must be non-negative, got -1s"},
		{name: "cap below base", in: CooldownSettings{Base: time.Hour, Max: time.Minute}, wrong: "maxMigrationCooldown (1m0s) must be >= migrationCooldown (1h0m0s)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.wrong != "" {
				require.EqualError(t, c.in.Validate(), c.wrong)
				return
			}
			require.NoError(t, c.in.Validate())
			require.Equal(t, c.inForce, c.in.WithDefaults())
		})
	}
}

func TestDeschedulerSettingsAreStoredInSeconds(t *testing.T) {
	t.Parallel()
	two := int64(2)
	in := &ConfigDetail{Policy: "text", Descheduler: &DeschedulerSettings{
		Cooldown: &CooldownSettings{Base: 1500 * time.Millisecond, Max: 6 * time.Hour, Window: 48 * time.Hour}, LimitPerNode: &two, Model: "4.21",
	}}
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"descheduler_policy": "text",
		"descheduler": {"cooldown": {"base": 1.5, "max": 21600, "window": 172800}, "limit_per_node": 2, "model": "4.21"}}`, string(raw))
	out, err := DecodeDetail(KindConfigSeen, raw, json.Unmarshal)
	require.NoError(t, err)
	require.Equal(t, in, out)
}
