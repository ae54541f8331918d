package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Values that a link takes from the row that it is in.
const (
	fieldNode      = "${__data.fields.node}"
	fieldNamespace = "${__data.fields.namespace}"
	fieldVMI       = "${__data.fields.vmi}"
)

// linkTo leads to another dashboard with the data sources, the cluster and the time range kept. vars are pairs of a variable
// and its value.
func linkTo(title, uid string, vars ...string) *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).Url(urlOf(uid, vars...))
}

func urlOf(uid string, vars ...string) string {
	parts := []string{"${" + varPrometheus + ":queryparam}", "${" + varPostgres + ":queryparam}", "${cluster:queryparam}"}
	for i := 0; i+1 < len(vars); i += 2 {
		parts = append(parts, "var-"+vars[i]+"="+vars[i+1])
	}
	return "/d/" + uid + "?" + strings.Join(append(parts, "${__url_time_range}"), "&")
}

func toVM() *dashboard.DashboardLinkBuilder {
	return linkTo("The story of this VM", UIDVM, "namespace", fieldNamespace, "vmi", fieldVMI)
}

func toLoop() *dashboard.DashboardLinkBuilder {
	return linkTo("Investigate this node", UIDLoop, "node", fieldNode)
}

func toDrain() *dashboard.DashboardLinkBuilder {
	return linkTo("The drain of this node", UIDDrain, "node", fieldNode)
}

// linkColumn is the property of a column that leads elsewhere.
func linkColumn(links ...*dashboard.DashboardLinkBuilder) dashboard.DynamicConfigValue {
	type dataLink struct {
		Title string `json:"title"`
		URL   string `json:"url"`
	}
	var out []dataLink
	for _, l := range links {
		built, err := l.Build()
		if err != nil {
			panic("link without a place: " + err.Error()) // a broken invariant: linkTo sets everything
		}
		out = append(out, dataLink{Title: built.Title, URL: *built.Url})
	}
	return dashboard.DynamicConfigValue{Id: "links", Value: out}
}

// dataLinks are those of a panel without columns.
func dataLinks(links ...*dashboard.DashboardLinkBuilder) []cog.Builder[dashboard.DashboardLink] {
	var out []cog.Builder[dashboard.DashboardLink]
	for _, l := range links {
		out = append(out, l)
	}
	return out
}
