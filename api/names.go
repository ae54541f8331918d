package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/evictrail/evictrail/trail"
)

const namesPath = "/api/v1/names"

// nameParams are the parameters of a search for names.
func nameParams() []param[trail.NameQuery] {
	var kinds []string
	for _, k := range trail.NameKinds() {
		kinds = append(kinds, string(k))
	}
	return []param[trail.NameQuery]{
		{name: "kind", about: "What sort of names; those of VMs are namespace/name.", schema: oneOf(kinds...), example: "vm", must: true,
			read: func(text string, _ time.Time, q *trail.NameQuery) error {
				if q.Kind = trail.NameKind(text); !slices.Contains(trail.NameKinds(), q.Kind) {
					return fmt.Errorf("kind %q: expected one of %v", text, trail.NameKinds())
				}
				return nil
			}, write: func(q trail.NameQuery) string { return string(q.Kind) }},
		{name: "cluster", about: "Only of this cluster.", schema: newTextSchema(), example: "prod",
			read: readText("cluster", func(q *trail.NameQuery) *string { return &q.Cluster }), write: func(q trail.NameQuery) string { return q.Cluster }},
		{name: "prefix", about: "Only those that begin so.", schema: newTextSchema(), example: "shop/",
			read: readText("prefix", func(q *trail.NameQuery) *string { return &q.Prefix }), write: func(q trail.NameQuery) string { return q.Prefix }},
	}
}

// NamesURL returns the path, relative to that of evictrail, and the query string of a search for names.
func NamesURL(q trail.NameQuery) *url.URL {
	return &url.URL{Path: namesPath, RawQuery: writeParams(nameParams(), q).Encode()}
}

// listNames answers which names are known.
func listNames(ctx context.Context, reader Reader, r *http.Request) (reply, error) {
	var q trail.NameQuery
	if err := readParams(nameParams(), r.URL.RawQuery, time.Now().UTC(), &q); err != nil {
		return reply{}, err
	}
	found, err := reader.Names(ctx, q)
	if found == nil {
		found = []string{} // an empty array, not null
	}
	return newJSONReply(found, err)
}

func (s *reads) namesRoute() route {
	return route{
		method: http.MethodGet, path: namesPath, tag: tagNames, id: "listNames", short: "List names that are known",
		about:  fmt.Sprintf("For completion: the names that begin with a prefix, sorted, at most %d.", trail.MaxNames),
		params: describeParams(nameParams()), problems: readProblems,
		answers: []answer{{http.StatusOK, "The names.", readHeaders, jsonContent(listOf(newTextSchema()), []string{"shop/db-1", "shop/db-2"})}, newUnchangedAnswer(readHeaders)},
		handler: s.newHandler(listNames),
	}
}
