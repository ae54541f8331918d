package dashboards

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// Values that a link takes from the row that it is in.
const (
	fieldNode      = "${__data.fields.node}"
	fieldNamespace = "${__data.fields.namespace}"
	fieldVMI       = "${__data.fields.vmi}"
	fieldLoop      = "${__data.fields.loop_id}"
	fieldCluster   = "${__data.fields.cluster}"
)

// linkTo leads to another dashboard with the data sources, the cluster and the time range kept. vars are pairs of a variable
// and its value.
func linkTo(title, uid string, vars ...string) *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).Url(urlOf(uid, vars...))
}

func urlOf(uid string, vars ...string) string {
	return urlOfCluster(uid, "${"+VarCluster+":queryparam}", vars...)
}

// urlOfCluster is urlOf with the parameter that chooses a cluster.
func urlOfCluster(uid, cluster string, vars ...string) string {
	parts := []string{"${" + varPrometheus + ":queryparam}", "${" + varPostgres + ":queryparam}", cluster}
	for i := 0; i+1 < len(vars); i += 2 {
		parts = append(parts, "var-"+vars[i]+"="+vars[i+1])
	}
	return "/d/" + uid + "?" + strings.Join(append(parts, "${__url_time_range}"), "&")
}

// toCluster leads to a dashboard about the cluster of the row.
func toCluster(title, uid string) *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder(title).Type(dashboard.DashboardLinkTypeLink).Url(urlOfCluster(uid, "var-"+VarCluster+"="+fieldCluster))
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

// dataLink is a link of a column, as Grafana saves it.
type dataLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// linkColumn is the property of a column that leads elsewhere.
func linkColumn(links ...*dashboard.DashboardLinkBuilder) dashboard.DynamicConfigValue {
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

// pageLinks are the links to evictrail's pages, by the column that has them. They are added behind the links to dashboards.
var pageLinks = map[string]dataLink{
	"vmi":     {"Page of this VM", "/vms/" + fieldNamespace + "/" + fieldVMI + pageQuery},
	"node":    {"Page of this node", "/nodes/" + fieldNode + pageQuery},
	"kind":    {"Page of this loop", "/loops/" + fieldLoop + "?cluster=${cluster:percentencode}"},
	"cluster": {"Page of this cluster", "/?cluster=" + fieldCluster},
}

// pageQuery has the cluster and the time range, which pages read as RFC 3339.
const pageQuery = "?cluster=${cluster:percentencode}&from=${__from:date}&to=${__to:date}"

// linkPages adds links to the pages at that address to the columns of tables that lead to a dashboard.
func linkPages(d dashboard.Dashboard, address string) {
	eachPanel(d, func(_ string, p dashboard.Panel) {
		if p.Type != "table" {
			return
		}
		for _, o := range p.FieldConfig.Overrides {
			column, byName := o.Matcher.Options.(*string)
			if !byName {
				continue
			}
			page, known := pageLinks[*column]
			for i, property := range o.Properties {
				if links, is := property.Value.([]dataLink); is && known {
					o.Properties[i].Value = slices.Concat(links, []dataLink{{page.Title, address + page.URL}})
				}
			}
		}
	})
}

// linkLoop makes the column kind of a table lead to its loop. Column loop_id is there for the link alone.
func linkLoop(t *table.PanelBuilder) *table.PanelBuilder {
	return t.OverrideByName("kind", []dashboard.DynamicConfigValue{linkColumn(toLoop())}).
		OverrideByName("loop_id", []dashboard.DynamicConfigValue{{Id: "custom.hidden", Value: true}})
}
