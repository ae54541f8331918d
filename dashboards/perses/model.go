package perses

import (
	"encoding/json"
	"fmt"
)

// Dashboard is a dashboard as Perses imports it. A project is not named: it is the one into which it is imported.
//
// Source: perses/perses pkg/model/api/v1 (Dashboard), v0.52.
type Dashboard struct {
	Kind     string   `json:"kind"`
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`
}

// Metadata names a dashboard.
type Metadata struct {
	Name string `json:"name"`
}

// Spec is what a dashboard shows.
type Spec struct {
	Display         Display          `json:"display"`
	Duration        string           `json:"duration"`        // the time range at first, up to now: 6h
	RefreshInterval string           `json:"refreshInterval"` // 30s
	Variables       []Variable       `json:"variables,omitempty"`
	Panels          map[string]Panel `json:"panels"`
	Layouts         []Layout         `json:"layouts"`
}

// Display is a title with a description.
type Display struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Plugin is a part of Perses with its settings.
type Plugin struct {
	Kind string `json:"kind"`
	Spec any    `json:"spec"`
}

// Variable is a list from which values are chosen.
type Variable struct {
	Kind string       `json:"kind"`
	Spec VariableSpec `json:"spec"`
}

// VariableSpec says which values there are, and what is chosen at first.
type VariableSpec struct {
	Name           string  `json:"name"`
	Display        Display `json:"display"`
	DefaultValue   string  `json:"defaultValue,omitempty"`
	AllowAllValue  bool    `json:"allowAllValue"`
	AllowMultiple  bool    `json:"allowMultiple"`
	CustomAllValue string  `json:"customAllValue,omitempty"`
	Plugin         Plugin  `json:"plugin"`
}

// Panel is one panel.
type Panel struct {
	Kind string    `json:"kind"`
	Spec PanelSpec `json:"spec"`
}

// PanelSpec is what a panel shows of its queries.
type PanelSpec struct {
	Display Display `json:"display"`
	Plugin  Plugin  `json:"plugin"`
	Queries []Query `json:"queries,omitempty"`
}

// Query is one query of a panel.
type Query struct {
	Kind string    `json:"kind"`
	Spec QuerySpec `json:"spec"`
}

// QuerySpec is what asks.
type QuerySpec struct {
	Plugin Plugin `json:"plugin"`
}

// Layout is a row of panels.
type Layout struct {
	Kind string     `json:"kind"`
	Spec LayoutSpec `json:"spec"`
}

// LayoutSpec has the title of a row, and its panels on a grid of 24 columns.
type LayoutSpec struct {
	Display LayoutDisplay `json:"display"`
	Items   []Item        `json:"items"`
}

// LayoutDisplay is the title of a row.
type LayoutDisplay struct {
	Title    string   `json:"title"`
	Collapse Collapse `json:"collapse"`
}

// Collapse reports whether a row is open at first.
type Collapse struct {
	Open bool `json:"open"`
}

// Item is the place of a panel.
type Item struct {
	X       int `json:"x"`
	Y       int `json:"y"`
	Width   int `json:"width"`
	Height  int `json:"height"`
	Content Ref `json:"content"`
}

// Ref names a panel of the dashboard.
type Ref struct {
	Ref string `json:"$ref"`
}

// JSON returns the dashboard as Perses imports it, indented and with a newline at its end.
func (d *Dashboard) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode dashboard %s for Perses: %w", d.Metadata.Name, err)
	}
	return append(text, '\n'), nil
}

// Object is the resource that Perses' operator makes a dashboard of.
//
// Source: perses/perses-operator api/v1alpha2 (PersesDashboard).
type Object struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   ObjectMetadata `json:"metadata"`
	Spec       ObjectSpec     `json:"spec"`
}

// ObjectMetadata names an object of Kubernetes.
type ObjectMetadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// ObjectSpec holds the dashboard.
type ObjectSpec struct {
	Config Spec `json:"config"`
}

// Object returns the resource of a namespace, which is the project of the dashboard. An empty namespace is where it is applied.
func (d *Dashboard) Object(namespace string) Object {
	return Object{
		APIVersion: "perses.dev/v1alpha2", Kind: "PersesDashboard",
		Metadata: ObjectMetadata{
			Name: d.Metadata.Name, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/name": "evictrail"},
		},
		Spec: ObjectSpec{Config: d.Spec},
	}
}
