package cluster_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// The kinds that the tests write.
var (
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	kubevirts  = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	vmis       = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
	migrations = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"}
)

// virtAPI is the part of KubeVirt's virt-api that evictions meet: the webhook that marks a VMI instead of having its pod evicted,
// and the subresources of subresources.kubevirt.io.
//
// Source: kubevirt/kubevirt pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go,
// pkg/virt-api/rest/evacuate_cancel.go.
type virtAPI struct {
	t      *testing.T
	client dynamic.Interface
	source bool // it notes the descheduler's requests on the VMI
}

const virtAPIManifest = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: virt-api-validator}
webhooks:
- name: virt-launcher-eviction-interceptor.kubevirt.io
  admissionReviewVersions: [v1]
  failurePolicy: Fail
  sideEffects: NoneOnDryRun
  timeoutSeconds: 10
  rules:
  - {apiGroups: [""], apiVersions: [v1], resources: [pods/eviction], operations: ["*"], scope: Namespaced}
  matchConditions:
  - {name: only-virt-launcher, expression: object.metadata.name.startsWith("virt-launcher")}
  clientConfig: {url: %[1]q, caBundle: %[2]s}
---
apiVersion: v1
kind: Service
metadata: {name: virt-api, namespace: kubevirt}
spec: {type: ExternalName, externalName: localhost, ports: [{port: %[3]s}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.subresources.kubevirt.io}
spec:
  group: subresources.kubevirt.io
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 15
  caBundle: %[2]s
  service: {name: virt-api, namespace: kubevirt, port: %[3]s}
`

// sourceSince is the first version that notes on the VMI that the descheduler asked.
var sourceSince = version.MustParseSemantic("v1.7.0")

// startVirtAPI installs that of a version of KubeVirt, such as v1.8.4. The namespace kubevirt must be there.
func startVirtAPI(t *testing.T, c *kubetest.Cluster, release string) {
	t.Helper()
	source, err := version.ParseSemantic(release)
	require.NoError(t, err)
	cert, err := c.CA.Server("virt-api.kubevirt.svc")
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(cert.Cert, cert.Key)
	require.NoError(t, err)
	v := &virtAPI{t: t, client: c.Dynamic(), source: source.AtLeast(sourceSince)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /evict", v.reviewEviction)
	mux.HandleFunc("GET /apis/subresources.kubevirt.io/v1", v.serveDiscovery)
	const of = "PUT /apis/subresources.kubevirt.io/v1/namespaces/{namespace}/"
	mux.HandleFunc(of+"virtualmachineinstances/{name}/evacuate/cancel", v.cancelEvacuation)
	mux.HandleFunc(of+"virtualmachines/{name}/migrate", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	c.Apply(fmt.Sprintf(virtAPIManifest, server.URL+"/evict", base64PEM(c.CA.PEM), port))
}

// reviewEviction answers the admission review of an eviction.
func (v *virtAPI) reviewEviction(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if refusal := v.admitEviction(r, review.Request); refusal != "" {
		answer.Allowed, answer.Result = false, &metav1.Status{Message: refusal, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests}
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// admitEviction says why an eviction is refused; empty where it is not. It marks the VMI where it should move instead.
func (v *virtAPI) admitEviction(r *http.Request, request *admissionv1.AdmissionRequest) string {
	pod, err := v.client.Resource(pods).Namespace(request.Namespace).Get(r.Context(), request.Name, metav1.GetOptions{})
	phase, _, _ := unstructured.NestedString(objectOf(pod), "status", "phase")
	domain := ""
	if err == nil {
		domain = pod.GetAnnotations()["kubevirt.io/domain"]
	}
	if domain == "" || phase == "Succeeded" || phase == "Failed" {
		return ""
	}
	vmi, err := v.client.Resource(vmis).Namespace(request.Namespace).Get(r.Context(), domain, metav1.GetOptions{})
	if err != nil {
		return fmt.Sprintf("kubevirt failed getting the vmi: %v", err)
	}
	strategy, _, _ := unstructured.NestedString(vmi.Object, "spec", "evictionStrategy")
	node, _, _ := unstructured.NestedString(vmi.Object, "status", "nodeName")
	mark, _, _ := unstructured.NestedString(vmi.Object, "status", "evacuationNodeName")
	on, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	switch {
	case strategy == "" || strategy == "None":
		return ""
	case strategy == "LiveMigrate" && !isMigratable(vmi):
		return fmt.Sprintf("VMI %s is configured with an eviction strategy but is not live-migratable", domain)
	case strategy == "LiveMigrateIfPossible" && !isMigratable(vmi):
		return ""
	case mark != "":
		return fmt.Sprintf("Evacuation in progress: Eviction triggered evacuation of VMI \"%s/%s\"", request.Namespace, domain)
	case on != node:
		return "Eviction request for target Pod"
	}
	var eviction policyv1.Eviction
	if err := json.Unmarshal(request.Object.Raw, &eviction); err != nil {
		return fmt.Sprintf("failed to parse the eviction object: %v", err)
	}
	dry := request.DryRun != nil && *request.DryRun || eviction.DeleteOptions != nil && len(eviction.DeleteOptions.DryRun) > 0
	if err := v.markVMI(r, vmi, on, &eviction, dry); err != nil {
		return fmt.Sprintf("kubevirt failed marking the vmi for eviction: %v", err)
	}
	return fmt.Sprintf("Eviction triggered evacuation of VMI \"%s/%s\"", request.Namespace, domain)
}

func (v *virtAPI) markVMI(r *http.Request, vmi *unstructured.Unstructured, node string, eviction *policyv1.Eviction, dry bool) error {
	patch := []map[string]any{{"op": "add", "path": "/status/evacuationNodeName", "value": node}}
	if v.source && eviction.Annotations["requested-by"] == "sigs.k8s.io/descheduler" {
		patch = append(patch, map[string]any{"op": "add", "path": "/metadata/annotations/kubevirt.io~1eviction-source", "value": "descheduler"})
	}
	var options metav1.PatchOptions
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	raw, err := json.Marshal(patch)
	if err == nil {
		_, err = v.client.Resource(vmis).Namespace(vmi.GetNamespace()).Patch(r.Context(), vmi.GetName(), types.JSONPatchType, raw, options)
	}
	return err
}

func isMigratable(vmi *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(vmi.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "LiveMigratable" {
			return c["status"] == "True"
		}
	}
	return false
}

func objectOf(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

// serveDiscovery answers the API server that there is such a group.
func (v *virtAPI) serveDiscovery(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"subresources.kubevirt.io/v1","resources":[]}`)
}

// cancelEvacuation takes the mark from a VMI: PUT .../evacuate/cancel.
func (v *virtAPI) cancelEvacuation(w http.ResponseWriter, r *http.Request) {
	var options struct {
		Node string `json:"evacuationNodeName"`
	}
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	patch := fmt.Sprintf(`[{"op":"test","path":"/status/evacuationNodeName","value":%q},{"op":"remove","path":"/status/evacuationNodeName"}]`, options.Node)
	_, err := v.client.Resource(vmis).Namespace(r.PathValue("namespace")).Patch(r.Context(), r.PathValue("name"), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
