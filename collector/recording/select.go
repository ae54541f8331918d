package recording

import (
	"encoding/json"
	"net/http"
	"strings"
)

// namespaces is the part of a path that stands before the name of a namespace.
const namespaces = "/namespaces/"

// resourceOfOne returns the resource of a request for one object in a namespace, which a recording has under its path without the namespace; nil where it has none.
func (s *Server) resourceOfOne(req *http.Request) *resource {
	before, after, namespaced := strings.Cut(req.URL.Path, namespaces)
	_, plural, of := strings.Cut(after, "/")
	if !namespaced || !of || nameAsked(req) == "" {
		return nil
	}
	return s.resources[before+"/"+plural]
}

// nameAsked returns the name of the object that a request asks for by a field selector; empty where it asks for all.
func nameAsked(req *http.Request) string {
	name, _ := strings.CutPrefix(req.URL.Query().Get("fieldSelector"), "metadata.name=")
	return name
}

// selectorOf returns which objects a list is of.
func selectorOf(req *http.Request) func(json.RawMessage) bool {
	name := nameAsked(req)
	_, after, _ := strings.Cut(req.URL.Path, namespaces)
	namespace, _, _ := strings.Cut(after, "/")
	return func(raw json.RawMessage) bool {
		if name == "" {
			return true
		}
		var o struct {
			Metadata struct{ Name, Namespace string }
		}
		return json.Unmarshal(raw, &o) == nil && o.Metadata.Name == name && (namespace == "" || o.Metadata.Namespace == namespace)
	}
}
