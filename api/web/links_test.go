package web

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail/trail"
)

func TestLinksAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, Links{}.Check())
	require.NoError(t, Links{Grafana: "https://grafana.example/g", Consoles: []string{
		"https://console.{cluster}.example/k8s/ns/{namespace}/kubevirt.io~v1~VirtualMachine/{name}", "https://console.example/k8s/cluster/nodes/{node}",
	}}.Check())
	require.ErrorContains(t, Links{Grafana: "grafana.example"}.Check(), `grafana-url "grafana.example": expected http`)
	require.ErrorContains(t, Links{Consoles: []string{"javascript:alert({name})"}}.Check(), "console-url")
	require.ErrorContains(t, Links{Consoles: []string{"https://console.example/{vm}"}}.Check(), "{vm} is unknown")
}

// TestPagesLinkElsewhere: each page leads to what shows the same, where that is known, and to nothing that has no name.
func TestPagesLinkElsewhere(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 21, 0, 30, 0, 0, time.UTC)
	shown := chart{window: window{From: from, To: from.Add(time.Hour)}}
	links := Links{Grafana: "https://grafana.example/", Consoles: []string{"https://console.example/{cluster}", "https://console.example/ns/{namespace}/vm/{name}", "https://console.example/nodes/{node}"}}
	const times = "&var-cluster=prod+%26+co"
	tests := []struct {
		name    string
		content any
		want    []choice
	}{
		{"a VM", vmBody{Cluster: "prod & co", Namespace: "shop", Name: `a"/../b`, Chart: shown}, []choice{
			{"Grafana", "https://grafana.example/d/evictrail-vm?from=1795221000000&to=1795224600000" + times + "&var-namespace=shop&var-vmi=a%22%2F..%2Fb"},
			{"Console", "https://console.example/prod%20%26%20co"}, {"VM in the console", "https://console.example/ns/shop/vm/a%22%2F..%2Fb"},
		}},
		{"a node that is drained", nodeBody{Cluster: "prod & co", Node: "n1", Chart: shown, Drains: []trail.Drain{{}}}, []choice{
			{"Grafana", "https://grafana.example/d/evictrail-drain?from=1795221000000&to=1795224600000" + times + "&var-node=n1"},
			{"Console", "https://console.example/prod%20%26%20co"}, {"Node in the console", "https://console.example/nodes/n1"},
		}},
		{"a loop", loopBody{Cluster: "prod & co", Loop: trail.Loop{Node: "n1"}, Chart: shown}, []choice{
			{"Grafana", "https://grafana.example/d/evictrail-loop?from=1795221000000&to=1795224600000" + times + "&var-node=n1"},
			{"Console", "https://console.example/prod%20%26%20co"}, {"Node in the console", "https://console.example/nodes/n1"},
		}},
		{"all clusters", frontBody{All: []fleetRow{{}}}, []choice{{"Grafana", "https://grafana.example/d/evictrail-fleet"}}},
		{"an error", failure{}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, frame{links: links, Content: tt.content}.Elsewhere())
			require.Empty(t, frame{Content: tt.content}.Elsewhere(), "nothing is configured")
		})
	}
	var page bytes.Buffer
	require.NoError(t, pages["vm"].ExecuteTemplate(&page, "links", frame{links: links, Content: tests[0].content}))
	require.Contains(t, page.String(), `<a href="https://console.example/ns/shop/vm/a%22%2F..%2Fb" rel="noreferrer">VM in the console</a>`)
	for _, name := range []string{"vm", "node", "loop", "front"} {
		require.Contains(t, pages[name].Lookup("main").Tree.Root.String(), `{{template "links" `, "%s leads elsewhere", name)
	}
}
