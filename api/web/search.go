package web

import (
	"net/http"

	"github.com/evictrail/evictrail/trail"
)

// searchBody is what was found.
type searchBody struct {
	Found []hit
	Total int    // how many there are, of which the first are shown
	Most  string // "at least" where not all were counted
}

// hit is something that was found, with the address of its page.
type hit struct {
	trail.Found
	Text, Href string
}

func searchPage(v *visit) error {
	v.Query = v.param("q")
	v.Title = "Search"
	var b searchBody
	if v.Query != "" {
		v.Title = "Search: " + v.Query
		found, total, err := v.fleet.Find(v.Context(), v.Cluster, v.Query)
		if err != nil {
			return err
		}
		if b.Total = total; total >= trail.MostCounted {
			b.Most = "at least "
		}
		for _, f := range found {
			b.Found = append(b.Found, hitOf(f))
		}
	}
	v.Content = b
	return v.renderPage("search", http.StatusOK)
}

// hitOf returns what was found with its page: of a migration, the one of its VM in the time of that migration.
func hitOf(f trail.Found) hit {
	switch f.Kind {
	case trail.FoundVM:
		return hit{f, f.Namespace + "/" + f.Name, vmHref(f.Cluster, f.Namespace, f.Name)}
	case trail.FoundNode:
		return hit{f, f.Name, nodeHref(f.Cluster, f.Name)}
	case trail.FoundMigration:
		return hit{f, f.Name + " of " + f.Namespace + "/" + f.VMI, buildHref("/vms/"+f.Namespace+"/"+f.VMI, "cluster", f.Cluster, "migration", f.UID)}
	}
	return hit{f, f.Name, ""}
}
