package chaos_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// leases are those of a cluster, as an API server keeps them: who updates one must have seen its latest version.
type leases struct {
	mu      sync.Mutex
	version int
	byPath  map[string]*coordination.Lease
	holders []string // that there ever were
}

func newLeases() *leases { return &leases{byPath: map[string]*coordination.Lease{}} }

func (l *leases) registerHandlers(mux *http.ServeMux) {
	const all = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
	mux.HandleFunc("POST "+all, l.putLease)
	mux.HandleFunc("PUT "+all+"/{name}", l.putLease)
	mux.HandleFunc("GET "+all+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if lease := l.byPath[r.PathValue("namespace")+"/"+r.PathValue("name")]; lease != nil {
			writeJSON(w, http.StatusOK, lease)
			return
		}
		writeStatusError(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	})
}

func (l *leases) putLease(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, is := decoded.(*coordination.Lease)
	if err != nil || !is {
		writeStatusError(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	path := r.PathValue("namespace") + "/" + lease.Name
	switch had := l.byPath[path]; {
	case had != nil && r.Method == http.MethodPost:
		writeStatusError(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	case had != nil && had.ResourceVersion != lease.ResourceVersion:
		writeStatusError(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	l.version++
	lease.ResourceVersion = strconv.Itoa(l.version)
	lease.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	l.byPath[path] = lease
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" && !slices.Contains(l.holders, *holder) {
		l.holders = append(l.holders, *holder)
	}
	writeJSON(w, http.StatusOK, lease)
}

// stealLeases assigns each lease to another of those who held it once, no matter who holds it now. That one finds out when it looks, and so does the one before.
func (l *leases) stealLeases() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := metav1.NowMicro()
	for _, lease := range l.byPath {
		others := slices.DeleteFunc(slices.Clone(l.holders), func(holder string) bool { return holder == *lease.Spec.HolderIdentity })
		l.version++
		stolen := lease.DeepCopy()
		stolen.ResourceVersion = strconv.Itoa(l.version)
		stolen.Spec.HolderIdentity, stolen.Spec.RenewTime, stolen.Spec.AcquireTime = &others[l.version%len(others)], &now, &now
		l.byPath[lease.Namespace+"/"+lease.Name] = stolen
	}
}

// writeJSON answers with JSON, which every client takes.
func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func writeStatusError(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	writeJSON(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code),
	})
}
