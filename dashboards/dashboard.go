package dashboards

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The UIDs of the dashboards, which links and alerts use. They never change.
const (
	UIDOverview   = "evictrail-overview"
	UIDLoop       = "evictrail-loop"
	UIDDrain      = "evictrail-drain"
	UIDMigrations = "evictrail-migrations"
	UIDCooldown   = "evictrail-cooldown"
	UIDVM         = "evictrail-vm"
	UIDCollector  = "evictrail-collector"
	UIDFleet      = "evictrail-fleet"
)

// Tag is on every dashboard: it finds them in Grafana, and the links between them.
const Tag = "evictrail"

// Dashboard is one dashboard. Its name is its UID, and the name of its file without the ending.
type Dashboard struct {
	UID   string
	Title string // the product, what it is about, and the question that it answers
	Short string // for whom and when, in half a sentence

	refresh string // how often it is loaded again; empty: refreshSeldom
	pages   string // address of evictrail's pages, to which tables link; empty: they do not

	rows        []row
	variables   []cog.Builder[dashboard.VariableModel]
	annotations []cog.Builder[dashboard.AnnotationQuery]
}

// row holds the panels that answer one question, from left to right. Their widths add up to lines of 24 columns.
type row struct {
	question  string
	panels    []cog.Builder[dashboard.Panel]
	collapsed bool // its panels ask nothing until it is opened
}

// All returns the dashboards in the order in which one reads them.
func All() []Dashboard {
	return []Dashboard{newOverviewDashboard(), newLoopDashboard(), newDrainsDashboard(), newMigrationsDashboard(), newCooldownsDashboard(), newVMDashboard(), newCollectorDashboard(), newFleetDashboard()}
}

// LinkPages returns the dashboard with links from its tables to evictrail's pages, whose address is given.
func (d Dashboard) LinkPages(publicURL string) Dashboard {
	d.pages = strings.TrimRight(publicURL, "/")
	return d
}

// idsPerRow is the distance of the panel IDs of two rows: a panel added to one does not change those of the next, and so not
// the links to them.
const idsPerRow = 100

// Build returns the dashboard as the SDK has it. An error is a mistake in a panel, which the tests find.
func (d Dashboard) Build() (dashboard.Dashboard, error) {
	b := dashboard.NewDashboardBuilder(d.Title).
		Uid(d.UID).Description(d.Short).Tags([]string{Tag}).
		Time("now-6h", "now").Refresh(cmp.Or(d.refresh, refreshSeldom)).Timezone("utc").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Variables(d.variables).Annotations(d.annotations).
		Link(dashboard.NewDashboardLinkBuilder("evictrail").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{Tag}).AsDropdown(false).KeepTime(true).IncludeVars(true))
	for _, r := range d.rows {
		line := dashboard.NewRowBuilder(r.question).Collapsed(r.collapsed)
		if r.collapsed {
			for _, p := range r.panels {
				line = line.WithPanel(p)
			}
			b = b.WithRow(line)
			continue
		}
		b = b.WithRow(line)
		for _, p := range r.panels {
			b = b.WithPanel(p)
		}
	}
	built, err := b.Build()
	if err != nil {
		return dashboard.Dashboard{}, fmt.Errorf("build dashboard %s: %w", d.UID, err)
	}
	numberPanels(built.Panels)
	showControls(built)
	if d.pages != "" {
		linkPages(built, d.pages)
	}
	return built, nil
}

// How often a dashboard that stays open is loaded again.
const (
	refreshSeldom = "1m"  // SQL over hours, from each screen on which the dashboard is open
	refreshOften  = "30s" // what Prometheus answers costs little
)

// showControls keeps links and switches of annotations in sight: the SDK puts them into a menu.
func showControls(d dashboard.Dashboard) {
	for i := range d.Links {
		d.Links[i].Placement = nil
	}
	for i := range d.Annotations.List {
		d.Annotations.List[i].Placement = nil
	}
}

// numberPanels assigns each row a multiple of idsPerRow and its panels the numbers after it.
func numberPanels(panels []dashboard.PanelOrRowPanel) {
	id := uint32(0)
	next := func() *uint32 { id++; return cog.ToPtr(id) }
	for _, p := range panels {
		if p.RowPanel == nil {
			p.Panel.Id = next()
			continue
		}
		id = (id/idsPerRow + 1) * idsPerRow
		p.RowPanel.Id = id
		for i := range p.RowPanel.Panels {
			p.RowPanel.Panels[i].Id = next()
		}
	}
}

// JSON returns the dashboard as Grafana imports it, indented and with a newline at its end.
func (d Dashboard) JSON() ([]byte, error) {
	built, err := d.Build()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode dashboard %s: %w", d.UID, err)
	}
	return append(text, '\n'), nil
}
