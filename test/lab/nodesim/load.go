package nodesim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// MetricNodeLoad is the gauge of a node's load, from 0 to 1, with the node in the label instance, as LowNodeUtilization wants it.
const MetricNodeLoad = "lab_node_load"

// SetNodeLoad adds a load to a node, apart from that of its VMs.
func (s *Simulator) SetNodeLoad(node string, load float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads[node] = load
}

// NodeLoads returns the load of every node: its own and that of the VMs that run on it, at most 1.
func (s *Simulator) NodeLoads() map[string]float64 {
	vmis, err := s.listVMIs()
	if err != nil {
		s.log.Warn("loads without vmis", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	loads := map[string]float64{}
	for name := range s.nodes {
		loads[name] = s.loads[name]
	}
	for _, v := range vmis {
		if _, known := loads[v.Status.NodeName]; known && v.Status.Phase == phaseRunning {
			loads[v.Status.NodeName] += s.scripts[v.Namespace+"/"+v.Name].Load
		}
	}
	for name, load := range loads {
		loads[name] = min(load, 1)
	}
	return loads
}

// LoadHandler serves the loads: on /metrics as Prometheus scrapes them, and on /api/v1/query as Prometheus answers the query
// MetricNodeLoad. The second is for the descheduler where there is no Prometheus; any other query is refused.
func (s *Simulator) LoadHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		loads := s.NodeLoads()
		_, _ = fmt.Fprintf(w, "# HELP %s Load of a simulated node, from 0 to 1.\n# TYPE %[1]s gauge\n", MetricNodeLoad)
		for _, node := range slices.Sorted(maps.Keys(loads)) {
			_, _ = fmt.Fprintf(w, "%s{instance=%q} %v\n", MetricNodeLoad, node, loads[node])
		}
	})
	mux.HandleFunc("/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		if query := r.FormValue("query"); query != MetricNodeLoad {
			w.WriteHeader(http.StatusBadRequest)
			writeJSON(w, map[string]any{"status": "error", "errorType": "bad_data", "error": fmt.Sprintf("query %q: expected %s", query, MetricNodeLoad)})
			return
		}
		now, result, loads := float64(time.Now().UnixMilli())/1000, []any{}, s.NodeLoads()
		for _, node := range slices.Sorted(maps.Keys(loads)) {
			result = append(result, map[string]any{
				"metric": map[string]string{"__name__": MetricNodeLoad, "instance": node},
				"value":  []any{now, strconv.FormatFloat(loads[node], 'f', -1, 64)},
			})
		}
		writeJSON(w, map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}})
	})
	return mux
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
