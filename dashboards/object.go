package dashboards

// Placing says where in a cluster the dashboards go.
type Placing struct {
	Namespace string            // of the objects; empty: where they are applied
	Folder    string            // in Grafana
	Instances map[string]string // labels of the Grafana that the operator adds them to; not for ConfigMaps
}

// DefaultPlacing is the folder evictrail of any Grafana that the operator of the documentation's examples runs.
func DefaultPlacing() Placing {
	return Placing{Folder: "evictrail", Instances: map[string]string{"dashboards": "grafana"}}
}

// ConfigMap returns the dashboard as the sidecar of Grafana's chart finds it: by a label, with the folder as an annotation.
//
// Source: kiwigrid/k8s-sidecar; grafana/helm-charts charts/grafana (sidecar.dashboards.label, folderAnnotation).
func (d Dashboard) ConfigMap(p Placing) (map[string]any, error) {
	text, err := d.JSON()
	if err != nil {
		return nil, err
	}
	meta := d.buildMetadata(p)
	meta["labels"].(map[string]any)["grafana_dashboard"] = "1"
	meta["annotations"] = map[string]any{"grafana_folder": p.Folder}
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": map[string]any{d.UID + ".json": string(text)},
	}, nil
}

// GrafanaDashboard returns the dashboard as a resource of the Grafana operator.
//
// Source: grafana/grafana-operator api/v1beta1/grafanadashboard_types.go.
func (d Dashboard) GrafanaDashboard(p Placing) (map[string]any, error) {
	text, err := d.JSON()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"apiVersion": "grafana.integreatly.org/v1beta1", "kind": "GrafanaDashboard", "metadata": d.buildMetadata(p),
		"spec": map[string]any{
			"folder": p.Folder, "instanceSelector": map[string]any{"matchLabels": p.Instances}, "json": string(text),
		},
	}, nil
}

func (d Dashboard) buildMetadata(p Placing) map[string]any {
	out := map[string]any{"name": d.UID, "labels": map[string]any{"app.kubernetes.io/name": "evictrail"}}
	if p.Namespace != "" {
		out["namespace"] = p.Namespace
	}
	return out
}
