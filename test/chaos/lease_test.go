package chaos_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leases are those of a cluster, as an API server keeps them: who updates one must have seen its latest version.
type leases struct {
	mu      sync.Mutex
	version int
	byPath  map[string]*coordination.Lease
}

func newLeases() *leases { return &leases{byPath: map[string]*coordination.Lease{}} }

func (l *leases) serve(mux *http.ServeMux) {
	const all = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
	mux.HandleFunc("POST "+all, l.put)
	mux.HandleFunc("PUT "+all+"/{name}", l.put)
	mux.HandleFunc("GET "+all+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if lease := l.byPath[r.PathValue("namespace")+"/"+r.PathValue("name")]; lease != nil {
			answer(w, http.StatusOK, lease)
			return
		}
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	})
}

func (l *leases) put(w http.ResponseWriter, r *http.Request) {
	var lease coordination.Lease
	if err := json.NewDecoder(r.Body).Decode(&lease); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	path := r.PathValue("namespace") + "/" + lease.Name
	switch had := l.byPath[path]; {
	case had != nil && r.Method == http.MethodPost:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	case had != nil && had.ResourceVersion != lease.ResourceVersion:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	l.version++
	lease.ResourceVersion = strconv.Itoa(l.version)
	l.byPath[path] = &lease
	answer(w, http.StatusOK, &lease)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code),
	})
}
