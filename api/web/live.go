package web

// followLive has the page follow what is new: of a VM, of a node, or of the whole cluster. A page about a span of time that somebody chose
// stays as it is.
func (v *visit) followLive(what, name string) {
	if v.param("from") != "" || v.param("to") != "" {
		return
	}
	v.Live = buildHref("/api/v1/stream", "cluster", v.Cluster, what, name)
}
