package deploy

import (
	"embed"
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"
	"text/template"
)

// Manifest is one file.
type Manifest struct {
	Name  string // unique; with ".yaml" the name of its file
	Short string // what it is, in some words
}

// The names of what is generated.
const (
	AuditPolicy    = "audit-policy"
	AuditWebhook   = "audit-webhook"
	Observer       = "observer"
	EvictionReason = "eviction-reason"
)

// Manifests lists all there are: first those for the machines of the control plane, then those for kubectl.
func Manifests() []Manifest {
	return []Manifest{
		{AuditPolicy, "which requests a kube-apiserver writes down: a file for --audit-policy-file"},
		{AuditWebhook, "where it sends them: a file for --audit-webhook-config-file"},
		{Observer, "a webhook that sees evictions of VMs and allows them all: for kubectl apply"},
		{EvictionReason, "the stated reason in audit events that have no bodies: for kubectl apply"},
	}
}

//go:embed manifests/*.yaml
var files embed.FS

var templates = template.Must(template.ParseFS(files, "manifests/*.yaml"))

// YAML returns the manifest of that name, beginning with a comment that says what it is for and ending with a newline. Its
// errors are those of Check, or that there is no such manifest.
func YAML(name string, o Options) (string, error) {
	if err := o.Check(); err != nil {
		return "", err
	}
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, name+".yaml", o.resolvePlaces()); err != nil {
		return "", fmt.Errorf("manifest %s: %w", name, err)
	}
	return out.String(), nil
}

// places are what the templates have filled in.
type places struct {
	Options
	Base       string // what the paths of evictrail follow
	ServerName string // in its certificate; empty where Base says it
	Observer   string // what the path of reviews follows, where it is a URL; empty: the Service
	ReviewPath string // /admission, with the secret where there is one
	CABundle   string // base64 of PEM; empty where it is to be filled in
}

func (o Options) resolvePlaces() places {
	p := places{
		Options: o, CABundle: base64.StdEncoding.EncodeToString(onlyCertificates(o.CA)),
		Observer: strings.TrimRight(o.ObserverURL, "/"), ReviewPath: "/admission",
	}
	if o.Secret != "" {
		p.ReviewPath += "/" + o.Secret
	}
	if o.URL != "" {
		p.Base = strings.TrimRight(o.URL, "/")
		return p
	}
	p.ServerName = o.Service + "." + o.Namespace + ".svc"
	p.Base = "https://" + net.JoinHostPort(p.ServerName, strconv.Itoa(o.Port))
	return p
}
