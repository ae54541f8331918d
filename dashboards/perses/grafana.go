package perses

import (
	"encoding/json"
	"fmt"

	"github.com/evictrail/evictrail/dashboards"
)

// grafana is what is read of a dashboard as Grafana imports it.
type grafana struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Refresh     string `json:"refresh"`
	Templating  struct {
		List []grafanaVariable `json:"list"`
	} `json:"templating"`
	Panels []grafanaPanel `json:"panels"`
}

type grafanaVariable struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Type  string `json:"type"`
	Multi bool   `json:"multi"`
}

// grafanaPanel is a panel, or the row of those that follow it, or that are in it where it is collapsed.
type grafanaPanel struct {
	ID          int            `json:"id"`
	Type        string         `json:"type"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Collapsed   bool           `json:"collapsed"`
	Panels      []grafanaPanel `json:"panels"`
	GridPos     struct {
		Width  int `json:"w"`
		Height int `json:"h"`
	} `json:"gridPos"`
	Targets []grafanaTarget `json:"targets"`
	Options struct {
		Content string `json:"content"` // of a text
	} `json:"options"`
	Transformations []struct {
		Options struct {
			RenameByName map[string]string `json:"renameByName"` // "Value #A": rate
		} `json:"options"`
	} `json:"transformations"`
	FieldConfig struct {
		Defaults  grafanaField      `json:"defaults"`
		Overrides []grafanaOverride `json:"overrides"`
	} `json:"fieldConfig"`
}

type grafanaTarget struct {
	RefID      string `json:"refId"`
	Datasource struct {
		Type string `json:"type"`
	} `json:"datasource"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// grafanaField is how a value is shown.
type grafanaField struct {
	Unit       string            `json:"unit"`
	Decimals   *float64          `json:"decimals"`
	Min        *float64          `json:"min"`
	Max        *float64          `json:"max"`
	Thresholds grafanaThresholds `json:"thresholds"`
	Custom     struct {
		DrawStyle string `json:"drawStyle"`
		Stacking  struct {
			Mode string `json:"mode"`
		} `json:"stacking"`
	} `json:"custom"`
}

type grafanaThresholds struct {
	Steps []struct {
		Value *float64 `json:"value"` // nil: the lowest
		Color string   `json:"color"`
	} `json:"steps"`
}

// grafanaOverride shows some values in another way.
type grafanaOverride struct {
	Matcher struct {
		ID      string          `json:"id"`
		Options json.RawMessage `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	} `json:"properties"`
}

// readGrafana returns what Grafana imports of a dashboard.
func readGrafana(d dashboards.Dashboard) (g grafana, err error) {
	text, err := d.JSON()
	if err != nil {
		return g, err
	}
	if err := json.Unmarshal(text, &g); err != nil {
		return g, fmt.Errorf("read dashboard %s: %w", d.UID, err)
	}
	return g, nil
}

// row is a row of panels under one question.
type row struct {
	title     string
	collapsed bool
	panels    []grafanaPanel
}

// listRows returns the rows of a dashboard from above to below.
func (g *grafana) listRows() (rows []row) {
	for _, p := range g.Panels {
		if p.Type == "row" {
			rows = append(rows, row{p.Title, p.Collapsed, p.Panels})
			continue
		}
		last := &rows[len(rows)-1]
		last.panels = append(last.panels, p)
	}
	return rows
}

// asksPrometheus reports whether a panel has queries, and all of Prometheus.
func (p *grafanaPanel) asksPrometheus() bool {
	for _, t := range p.Targets {
		if t.Datasource.Type != "prometheus" {
			return false
		}
	}
	return len(p.Targets) > 0
}

// fieldOf returns how the values of a query are shown: by its letter, or by the name of its column, where they are styled one by one.
func (p *grafanaPanel) fieldOf(name string) (grafanaField, error) {
	f := p.FieldConfig.Defaults
	for _, o := range p.FieldConfig.Overrides {
		var of string
		if json.Unmarshal(o.Matcher.Options, &of) != nil || of != name {
			continue
		}
		for _, property := range o.Properties {
			into := map[string]any{"unit": &f.Unit, "decimals": &f.Decimals, "thresholds": &f.Thresholds}[property.ID]
			if into == nil {
				continue
			}
			if err := json.Unmarshal(property.Value, into); err != nil {
				return f, fmt.Errorf("%s of %s: %w", property.ID, name, err)
			}
		}
	}
	return f, nil
}

// nameColumn returns the name of the column with the values of a query in a table of several; empty where it has none.
func (p *grafanaPanel) nameColumn(letter string) string {
	for _, t := range p.Transformations {
		if name := t.Options.RenameByName["Value #"+letter]; name != "" {
			return name
		}
	}
	return ""
}
