package mask

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const jwt = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJl"

// TestText: in each text, the word canary stands in what is secret alone.
func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://u:canary@db.example/e?sslmode=verify-full":             "postgres://u:xxxxx@db.example/e?sslmode=verify-full",
		"postgres://u:can/ary@db.example/e":                                "postgres://u:xxxxx@db.example/e",
		"https://prometheus.example:9090/path, by u@example":               "https://prometheus.example:9090/path, by u@example",
		"https://prometheus.example:9090/a@b":                              "https://prometheus.example:9090/a@b",
		"postgres:///e?user=u&password=canary&sslmode=disable":             "postgres:///e?user=u&password=xxxxx&sslmode=disable",
		"host=db user=u password=canary dbname=e":                          "host=db user=u password=xxxxx dbname=e",
		`host=db password='can\' ary' dbname=e`:                            "host=db password='xxxxx' dbname=e",
		"PGPASSWORD=canary psql":                                           "PGPASSWORD=xxxxx psql",
		`{"level":"WARN","token":"canary","err":"x"}`:                      `{"level":"WARN","token":"xxxxx","err":"x"}`,
		`{"body":"{\"password\":\"canary\",\"user\":\"u\"}"}`:              `{"body":"{\"password\":\"xxxxx\",\"user\":\"u\"}"}`,
		"secret: canary\nnext: line":                                       "secret: xxxxx\nnext: line",
		"Authorization: Bearer canary":                                     "Authorization: Bearer xxxxx",
		"secret: can&ary":                                                  "secret: xxxxx",
		`{"Authorization":["Bearer canary"],"b":1}`:                        `{"Authorization":["Bearer xxxxx"],"b":1}`,
		"map[Authorization:[Bearer canary] B:1]":                           "map[Authorization:[Bearer xxxxx] B:1]",
		"Authorization: Basic Y2FuYXJ5":                                    "Authorization: Basic xxxxx",
		"sent bearer canary.canary~1 to it":                                "sent bearer xxxxx to it",
		"token is " + jwt + ", refused":                                    "token is xxxxx, refused",
		"as sha256~canary0123456789canary0123456789 at the API":            "as sha256~xxxxx at the API",
		"POST /admission/canary 200":                                       "POST /admission/xxxxx 200",
		"-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n": "-----BEGIN PRIVATE KEY-----xxxxx-----END PRIVATE KEY-----\n",
		"-----BEGIN RSA PRIVATE KEY-----\ncanary\n":                        "-----BEGIN RSA PRIVATE KEY-----xxxxx",
		"canary\n-----END EC PRIVATE KEY-----\nmore":                       "xxxxx-----END EC PRIVATE KEY-----\nmore",
		// What is no secret stays.
		"database-password-file: /run/secrets/pg # with the bearer tokens": "database-password-file: /run/secrets/pg # with the bearer tokens",
		"evictions=3 tokenreviews: create":                                 "evictions=3 tokenreviews: create",
	} {
		require.Equal(t, want, Text(text))
		require.Equal(t, want, Text(want), "a second time")
	}
}

// TestKnownSecrets are hidden in each form, wherever they stand.
func TestKnownSecrets(t *testing.T) {
	t.Parallel()
	secret := `p&ss "word"/1`
	m := New([]string{secret, secret + "2", "e"})
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"open " + secret + ": no such file":   "open xxxxx: no such file",
		"open " + secret + "2: no such file":  "open xxxxx: no such file",
		string(quoted):                        `"xxxxx"`,
		"?x=p%26ss+%22word%22%2F1":            "?x=xxxxx",
		"cCZzcyAid29yZCIvMQ== in a Secret, e": "xxxxx in a Secret, e",
	} {
		require.Equal(t, want, m.Mask(text))
	}
}
