package collector

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

// TestRequestersOfAnImpersonation reads who really asked, as whom, and from where.
func TestRequestersOfAnImpersonation(t *testing.T) {
	t.Parallel()
	detail := func(changes ...string) trail.RequestDetail {
		taken, report, err := readAudit(t, strings.NewReader(newEvictionEvent(changes...)))
		require.NoError(t, err)
		require.Len(t, taken, 1, report.First)
		return taken[0].Detail
	}
	as := func(user string) trail.RequestDetail {
		return detail(`"user":{`, `"impersonatedUser":{"username":"`+user+`"},"user":{`)
	}
	require.Equal(t, []string{"bob", "alice"}, []string{as("bob").User, as("bob").Impersonator})
	require.Equal(t, []string{"alice", ""}, []string{as("alice").User, as("alice").Impersonator}, "who acts as oneself acts as nobody")
	require.Equal(t, []string{"alice", ""}, []string{as("").User, as("").Impersonator})

	from := func(ips string) string { return detail(`"userAgent"`, `"sourceIPs":`+ips+`,"userAgent"`).SourceIP }
	require.Equal(t, "10.0.0.1", from(`["10.0.0.1"]`))
	require.Equal(t, "203.0.113.7, fe80::1", from(`["203.0.113.7","fe80::1"]`), "the last one is the one that the API server saw")
	require.Empty(t, from(`null`))
	require.Empty(t, detail().SourceIP)
	require.Equal(t, "10.0.0.1", from(`["not an address",7,"10.0.0.1"]`), "what a client wrote there is no reason to refuse the event")
	require.Equal(t, "10.9.9.9, 10.9.9.9, 10.9.9.9, 10.9.9.9, 10.0.0.1", from(`[`+strings.Repeat(`"10.9.9.9",`, 3000)+`"10.0.0.1"]`), "no number of forged ones hides it")
}

// TestRequestersWhoPassForKubeVirt keeps what somebody asks under a name of KubeVirt's, of which nothing is kept.
func TestRequestersWhoPassForKubeVirt(t *testing.T) {
	t.Parallel()
	change := []string{
		`"objectRef":{"resource":"pods","namespace":"shop","name":"virt-launcher-db-x","apiVersion":"v1","subresource":"eviction"}`,
		`"objectRef":{"resource":"virtualmachineinstancemigrations","namespace":"shop","name":"m1","apiGroup":"kubevirt.io","apiVersion":"v1"}`,
	}
	node := []string{
		`"objectRef":{"resource":"pods","namespace":"shop","name":"virt-launcher-db-x","apiVersion":"v1","subresource":"eviction"}`,
		`"objectRef":{"resource":"nodes","name":"n1","apiVersion":"v1"}`, `"verb":"create"`, `"verb":"patch"`,
	}
	for _, c := range []struct {
		name, user, as string
		about          []string
		kept           bool
	}{
		{"KubeVirt", "system:serviceaccount:kubevirt:kubevirt-controller", "", change, false},
		{"KubeVirt on OpenShift", "system:serviceaccount:openshift-cnv:kubevirt-apiserver", "", change, false},
		{"an account of that name in a namespace of somebody's", "system:serviceaccount:team-a:kubevirt-controller", "", change, true},
		{"a person who acts as KubeVirt", "alice", "system:serviceaccount:kubevirt:kubevirt-controller", change, true},
		{"a heartbeat", "system:serviceaccount:virt:kubevirt-handler", "", node, false},
		{"a kubelet", "system:node:n1", "", node, false},
		{"the soft tainter", "system:serviceaccount:openshift-kube-descheduler-operator:openshift-descheduler-softtainter", "", node, false},
		{"a person who acts as a kubelet", "alice", "system:node:n1", node, true},
		{"an account with such a name", "system:serviceaccount:ops:my-softtainter", "", node, true},
		{"a user with such a name", "oidc:kubevirt-handler", "", node, true},
	} {
		changes := append([]string{`"username":"alice"`, `"username":"` + c.user + `"`}, c.about...)
		if c.as != "" {
			changes = append(changes, `"userAgent"`, `"impersonatedUser":{"username":"`+c.as+`"},"userAgent"`)
		}
		taken, report, err := readAudit(t, strings.NewReader(newEvictionEvent(changes...)))
		require.NoError(t, err, c.name)
		require.Zero(t, report.Refused, report.First)
		require.Equal(t, c.kept, len(taken) == 1, c.name)
	}
}

// TestRequestersAreRedacted leaves addresses out of a redacted recording, unless they are asked for, and assigns both users a pseudonym.
func TestRequestersAreRedacted(t *testing.T) {
	t.Parallel()
	kept := func(r *Redactor) string {
		var e slimAudit
		require.NoError(t, json.Unmarshal([]byte(`{"auditID":"a-1","user":{"username":"alice"},"impersonatedUser":{"username":"bob"}}`), &e))
		e.SourceIPs = lastIPs{"203.0.113.7"}
		v, err := e.pruneEvent()
		require.NoError(t, err)
		raw, err := json.Marshal(r.Value(v))
		require.NoError(t, err)
		return string(raw)
	}
	r := NewRedactor()
	require.NotContains(t, kept(r), "203.0.113.7")
	require.NotContains(t, kept(r), "sourceIPs")
	require.Contains(t, kept(r), `"username":"`+r.Name("alice")+`"`)
	require.Contains(t, kept(r), `"username":"`+r.Name("bob")+`"`)
	r.SourceIPs = true
	require.Contains(t, kept(r), `"sourceIPs":["203.0.113.7"]`)
}
