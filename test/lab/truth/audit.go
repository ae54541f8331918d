package truth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// auditEvent is what is read of an event of the API group audit.k8s.io/v1.
type auditEvent struct {
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	URI       string    `json:"requestURI"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject struct {
		DeleteOptions struct {
			DryRun []string `json:"dryRun"`
		} `json:"deleteOptions"`
	} `json:"requestObject"`
}

// launcherPrefix begins the names of the pods in which guests run. Source: kubevirt/pkg/virt-controller/services/template.go.
const launcherPrefix = "virt-launcher-"

// ReadAudit reads the eviction requests from an audit log of a kube-apiserver. A line that is being written is left out.
func ReadAudit(path string) ([]Request, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var out []Request
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 16<<20)
	for number := 1; lines.Scan(); number++ {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if number > bytes.Count(raw, []byte{'\n'}) {
				break
			}
			return nil, fmt.Errorf("read the audit log: line %d: %w", number, err)
		}
		if r, is := e.evictionRequest(); is {
			out = append(out, r)
		}
	}
	return out, lines.Err()
}

// evictionRequest returns the eviction request that an event is the answer to; false where it is none.
func (e auditEvent) evictionRequest() (Request, bool) {
	ref := e.ObjectRef
	dry := len(e.RequestObject.DeleteOptions.DryRun) > 0 || strings.Contains(e.URI, "dryRun=")
	is := e.Stage == "ResponseComplete" && e.Verb == "create" && ref.Resource == "pods" && ref.Subresource == "eviction" && strings.HasPrefix(ref.Name, launcherPrefix) && !dry
	return Request{At: e.Received.UTC(), Namespace: ref.Namespace, Pod: ref.Name, User: e.User.Username, Code: e.Response.Code}, is
}
