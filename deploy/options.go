package deploy

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Options say where API servers reach evictrail and how what is generated is named.
type Options struct {
	Namespace  string // of the Service
	Service    string
	Port       int    // of the Service
	URL        string // https; in place of the Service where it is not empty, and what follows it is "/audit"
	CA         []byte // PEM: the CA of evictrail's certificate; nil leaves it to be filled in
	PolicyName string // of the ValidatingAdmissionPolicy and of its binding

	// The observer has a port of its own, which is for API servers alone.
	ObserverPort int    // of the Service
	ObserverURL  string // as URL, for what follows it is "/admission"
	Secret       string // what follows that in the path; empty: API servers show a client certificate
}

// DefaultOptions are those of an evictrail that runs in the cluster it records.
func DefaultOptions() Options {
	return Options{Namespace: "evictrail", Service: "evictrail", Port: 443, PolicyName: "evictrail-eviction-reason", ObserverPort: 9443}
}

// Check says what makes the options unusable: one line for each mistake.
func (o Options) Check() error {
	return errors.Join(
		checkName("namespace", o.Namespace, validation.IsDNS1123Label),
		checkName("service", o.Service, validation.IsDNS1035Label),
		checkPort("port", o.Port), checkPort("observer port", o.ObserverPort), checkURL("url", o.URL), checkURL("observer url", o.ObserverURL), o.checkCA(), o.checkPolicyName())
}

func checkName(what, name string, check func(string) []string) error {
	if wrong := check(name); len(wrong) > 0 {
		return fmt.Errorf("%s %q: %s", what, name, wrong[0])
	}
	return nil
}

func checkPort(what string, port int) error {
	if wrong := validation.IsValidPortNum(port); len(wrong) > 0 {
		return fmt.Errorf("%s %d: %s", what, port, wrong[0])
	}
	return nil
}

// checkURL asks for what the API server asks of the URL of a webhook.
//
// Source: k8s.io/apiserver pkg/util/webhook/validation.go, ValidateWebhookURL.
func checkURL(what, address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s %q: expected https://HOST[:PORT][/PATH], without user, query and fragment", what, address)
	}
	return nil
}

func (o Options) checkCA() error {
	if o.CA == nil {
		return nil
	}
	certificates := onlyCertificates(o.CA)
	if len(certificates) == 0 {
		return errors.New("CA: no certificate in it: expected PEM, -----BEGIN CERTIFICATE-----")
	}
	for rest := certificates; len(rest) > 0; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("CA: %w", err)
		}
	}
	return nil
}

// serverSuffix ends names whose audit annotations are the API server's own: evictrail does not read a reason there.
const serverSuffix = ".k8s.io"

func (o Options) checkPolicyName() error {
	if strings.HasSuffix(o.PolicyName, serverSuffix) {
		return fmt.Errorf("policy name %q: must not end in %s: annotations of such names are the API server's own", o.PolicyName, serverSuffix)
	}
	return checkName("policy name", o.PolicyName, validation.IsDNS1123Subdomain)
}

// onlyCertificates leaves out whatever else is in a file of certificates, a private key above all.
func onlyCertificates(text []byte) []byte {
	var out bytes.Buffer
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		}
	}
	return out.Bytes()
}
