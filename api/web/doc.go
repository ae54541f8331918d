// Package web is the web page: the story of a VM, a node, a loop and a cluster at a glance, as HTML that is made here and
// reads without JavaScript.
//
//	site := &web.Site{Readers: web.ForAll(reader)}
//	site.Route(router) // "/", "/whatif" and the other pages on a *mux.Router
//
// A page asks its Reader once or twice, lays what comes out on lanes (chart.go, lanes.go), and renders a template. What it says in
// words are the sentences of package trail, so that command line, API and page say the same. Nothing is kept between two requests.
// Each page has a file of its own: front.go, vm.go, node.go, loop.go, facts.go, search.go. What pages write is in ack.go.
// The pages of lists are one page, list.go, and what each shows is one table, list_columns.go; their filters are the parameters of the API.
// Where they lead outside of evictrail is in links.go, their addresses for others in address.go.
package web
