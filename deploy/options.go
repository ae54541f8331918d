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
	URL        string // https; in place of the Service where it is not empty, and what follows it is "/audit" or "/admission"
	CA         []byte // PEM: the CA of evictrail's certificate; nil leaves it to be filled in
	PolicyName string // of the ValidatingAdmissionPolicy and of its binding
}

// DefaultOptions are those of an evictrail that runs in the cluster it records.
func DefaultOptions() Options {
	return Options{Namespace: "evictrail", Service: "evictrail", Port: 443, PolicyName: "evictrail-eviction-reason"}
}

// Check says what makes the options unusable: one line for each mistake.
func (o Options) Check() error {
	return errors.Join(
		named("namespace", o.Namespace, validation.IsDNS1123Label),
		named("service", o.Service, validation.IsDNS1035Label),
		o.checkPort(), o.checkURL(), o.checkCA(), o.checkPolicyName())
}

func named(what, name string, check func(string) []string) error {
	if wrong := check(name); len(wrong) > 0 {
		return fmt.Errorf("%s %q: %s", what, name, wrong[0])
	}
	return nil
}

func (o Options) checkPort() error {
	if wrong := validation.IsValidPortNum(o.Port); len(wrong) > 0 {
		return fmt.Errorf("port %d: %s", o.Port, wrong[0])
	}
	return nil
}

// checkURL asks for what the API server asks of the URL of a webhook.
//
// Source: k8s.io/apiserver pkg/util/webhook/validation.go, ValidateWebhookURL.
func (o Options) checkURL() error {
	if o.URL == "" {
		return nil
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("url %q: expected https://HOST[:PORT][/PATH], without user, query and fragment", o.URL)
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
	return named("policy name", o.PolicyName, validation.IsDNS1123Subdomain)
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
