package deploy_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/deploy"
)

// newCertificate makes a certificate, as PEM.
func newCertificate(t *testing.T) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	require.NoError(t, err)
	return encodePEM("CERTIFICATE", der)
}

func encodePEM(kind string, bytes []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		change  func(o *deploy.Options)
		problem string // empty: none
	}{
		{"the defaults", func(*deploy.Options) {}, ""},
		{"a CA", func(o *deploy.Options) { o.CA = newCertificate(t) }, ""},
		{"a URL with a path", func(o *deploy.Options) { o.URL = "https://10.0.0.7:8443/evictrail" }, ""},
		{"a namespace that would break the YAML", func(o *deploy.Options) { o.Namespace = "a: b\nc" }, `namespace "a: b\nc"`},
		{"no service", func(o *deploy.Options) { o.Service = "" }, `service ""`},
		{"no port", func(o *deploy.Options) { o.Port = 0 }, "port 0"},
		{"a port too high", func(o *deploy.Options) { o.Port = 65536 }, "port 65536"},
		{"a URL without TLS", func(o *deploy.Options) { o.URL = "http://evictrail.example" }, "expected https://HOST"},
		{"a URL without a host", func(o *deploy.Options) { o.URL = "https:///audit" }, "expected https://HOST"},
		{"a URL with a password", func(o *deploy.Options) { o.URL = "https://u:p@evictrail.example" }, "without user"},
		{"a URL with a query", func(o *deploy.Options) { o.URL = "https://evictrail.example/?a=b" }, "query"},
		{"an empty CA", func(o *deploy.Options) { o.CA = []byte{} }, "no certificate"},
		{"a key for a CA", func(o *deploy.Options) { o.CA = encodePEM("PRIVATE KEY", []byte("secret")) }, "no certificate"},
		{"a CA that is none", func(o *deploy.Options) { o.CA = encodePEM("CERTIFICATE", []byte("secret")) }, "CA: x509"},
		{"a policy name with a space", func(o *deploy.Options) { o.PolicyName = "eviction reason" }, `policy name "eviction reason"`},
		{"a policy name of the API server", func(o *deploy.Options) { o.PolicyName = "evictions.k8s.io" }, "must not end in .k8s.io"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := deploy.DefaultOptions()
			tt.change(&o)
			err := o.Check()
			_, yamlErr := deploy.YAML(deploy.Observer, o)
			if tt.problem == "" {
				require.NoError(t, err)
				require.NoError(t, yamlErr)
				return
			}
			require.ErrorContains(t, err, tt.problem)
			require.Equal(t, err, yamlErr, "nothing is generated that cannot be")
		})
	}
}

func TestCheckReportsEveryMistake(t *testing.T) {
	t.Parallel()
	err := deploy.Options{}.Check()
	for _, what := range []string{"namespace", "service", "port", "policy name"} {
		require.ErrorContains(t, err, what)
	}
}
