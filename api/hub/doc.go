// Package hub answers for several evictrails as one: it asks each, at the same time, with the token of the caller, and copies nothing.
//
//	h, err := hub.New(hub.Config{Sources: []hub.Source{{Name: "east", URL: "https://east.example"}, {Name: "west", URL: "https://west.example"}}})
//	server := h.Server(site) // an api.Server: what is about several clusters is merged, what is about one is asked of its source
//	go h.Run(ctx)            // looks every few seconds which sources are there
//
// Three rules hold:
//
//   - Sources decide what a caller may see; the hub passes tokens on and knows nobody.
//   - A source that is down, slow or refuses is named in every answer, by the header api.MissingHeader and on every page. It has one time limit
//     for all that a request asks of it, and once it is missing in an answer it is not asked again for that one.
//   - A cluster has the name that its source has for it. Where two sources have one of the same name, it is SOURCE/NAME (names.go), and who
//     asks for NAME is asked to choose.
//
// hub.go puts it together; source.go is one evictrail; asking.go is one request and whom it asks; reader.go and list.go merge what they
// answer; pages.go passes on what is about one cluster to its source, and page.go has the page of a source say what the hub knows.
package hub
