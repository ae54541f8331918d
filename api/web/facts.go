package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/evictrail/evictrail/trail"
)

// factsBody is raw facts, as they were recorded.
type factsBody struct {
	Cluster, Namespace, Name, Node string
	Migration                      string // only of this one
	From, To                       time.Time
	Facts                          []fact
	Later                          string // address of those after; empty where these are all
}

// fact is a fact with its detail as text.
type fact struct {
	trail.Recorded
	Pretty string // empty where it has none
}

// factsKept bounds a page of facts.
const factsKept = 500

// factsPage shows what was recorded of a VM or a node in a span of time; without one, of the last day that is known.
func factsPage(v *visit) error {
	b := factsBody{Cluster: v.Cluster, Node: v.param("node"), Migration: v.param("migration")}
	vm, of := v.param("vm"), trail.Subject{Kind: trail.SubjectNode, Name: b.Node}
	if vm != "" {
		of = trail.Subject{Kind: trail.SubjectVMI, Name: vm}
		b.Namespace, b.Name = of.VM()
	}
	if of.Name == "" || vm != "" && b.Name == "" {
		return fmt.Errorf("%w: vm=%q, node=%q: expected vm=NAMESPACE/NAME or node=NAME", errBadQuestion, vm, b.Node)
	}
	var err error
	if b.From, err = v.parseTimeParam("from"); err != nil {
		return err
	}
	if b.To, err = v.parseTimeParam("to"); err != nil {
		return err
	}
	if b.To.IsZero() {
		b.To = time.Now().UTC()
	}
	facts, err := v.reader.Recorded(v.Context(), v.Cluster, of, b.From, b.To, factsKept+1)
	if err != nil {
		return err
	}
	if len(facts) > factsKept {
		b.Later = v.linkWith("from", formatTimestamp(facts[factsKept].OccurredAt))
		facts = facts[:factsKept]
	}
	for _, f := range facts {
		if b.Migration == "" || f.MigrationUID == b.Migration {
			b.Facts = append(b.Facts, fact{f, formatDetail(f.Detail)})
		}
	}
	cluster := v.Cluster
	if cluster == "" && len(v.Clusters) == 1 {
		cluster = v.Clusters[0].Name
	}
	if err := v.nameGaps(cluster, window{From: b.From, To: b.To, Now: v.asked}, true); err != nil {
		return err
	}
	v.Title, v.Content = "Facts of "+strings.TrimSpace(vm+" "+b.Node), b
	return v.renderPage("facts", http.StatusOK)
}

func formatDetail(detail trail.Detail) string {
	if detail == nil {
		return ""
	}
	text, err := json.MarshalIndent(detail, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
