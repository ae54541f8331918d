package cluster_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/store/storetest"
)

// mayRead lets the ServiceAccounts of a namespace see all VMs, and read the metrics.
const mayRead = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [kubevirt.io], resources: [virtualmachineinstances], verbs: [get]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: evictrail}]
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader, namespace: evictrail}}
`

// TestTokensOfOthersAreRefused asks a real API server for tokens of one ServiceAccount with several audiences, and shows each to evictrail, as
// it is by default and where it is set otherwise; and shows ours to the API server, where it is of no use to anyone who has stolen it.
func TestTokensOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{deaf: true})
	s.Apply(mayRead)
	token := func(audiences ...string) string {
		return s.Token(namespace, "reader", audiences...)
	}
	tokens := map[string]string{"ours": token("evictrail"), "both": token("vault", "evictrail"), "others": token("vault"), "plain": token(), "another name": token("trail-of-prod")}
	get := func(client *http.Client, url, token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		return answer.StatusCode
	}
	const yes, no = http.StatusOK, http.StatusUnauthorized
	for _, c := range []struct {
		name          string
		args          []string
		lists, scrape map[string]int
	}{
		{"by default", nil,
			map[string]int{"ours": yes, "both": yes, "others": no, "plain": no, "another name": no},
			map[string]int{"ours": yes, "both": yes, "others": no, "plain": yes, "another name": no}},
		{"during an upgrade", []string{"--auth-api-tokens=all", "--auth-audience=evictrail", "--auth-audience=trail-of-prod"},
			map[string]int{"ours": yes, "both": yes, "others": no, "plain": yes, "another name": yes},
			map[string]int{"ours": yes, "both": yes, "others": no, "plain": yes, "another name": yes}},
		{"at its strictest", []string{"--auth-api-tokens=none"},
			map[string]int{"ours": yes, "both": yes, "others": no, "plain": no, "another name": no},
			map[string]int{"ours": yes, "both": yes, "others": no, "plain": no, "another name": no}},
	} {
		p := s.startEvictrail(storetest.NewURL(t), append([]string{"--auth=kubernetes", "--cluster=c1"}, c.args...)...)
		s.awaitReady()
		for name, token := range tokens {
			require.Equal(t, c.lists[name], get(s.client, "https://"+s.address+"/api/v1/names?kind=namespace", token), "%s, %s: list", c.name, name)
			require.Equal(t, c.scrape[name], get(s.client, "https://"+s.address+"/metrics", token), "%s, %s: scrape", c.name, name)
		}
		require.NoError(t, p.Stop())
	}
	direct := clientTrusting(t, s.CA)
	require.Equal(t, http.StatusOK, get(direct, s.Admin().Host+"/apis", tokens["plain"]))
	require.Equal(t, http.StatusUnauthorized, get(direct, s.Admin().Host+"/apis", tokens["ours"]), "a token for evictrail is of no use at the API server")
}
