package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
)

// Access says who may send.
type Access struct {
	// Open lets everybody in who can reach us. It is for loopback, and where that was said aloud.
	Open bool
	// Tokens returns the bearer tokens that are accepted, as they are now; nil: none are.
	Tokens func() ([]string, error)
	// Clients are the common names and DNS names of client certificates that are accepted, once their CA is; none: all
	// that the CA signed.
	Clients []string
	// Certificates reports whether client certificates are asked for at all.
	Certificates bool
	// Denied is called for each sender that is refused, and by which of the causes below; nil: nobody is.
	Denied func(cause string)
}

// challenge says how senders and callers say who they are.
const challenge = `Bearer realm="evictrail"`

// bearer precedes a token in the header Authorization.
const bearer = "Bearer "

// Why a sender is refused.
const (
	DeniedAll         = "no_sender_known"
	DeniedCredentials = "bad_credentials"
	DeniedReview      = "bad_admission_path" // a review at a path without our secret, and without a certificate
)

// isKnownSender reports whether a request comes from a known sender: by its certificate, or by a secret that it sends.
func (a Access) isKnownSender(r *http.Request, secret string) bool {
	return a.Open || a.Certificates && a.hasAcceptedCertificate(r) || a.Tokens != nil && a.isAcceptedSecret(secret)
}

// requireKnownSender answers for itself and returns false where the sender may not.
func (a Access) requireKnownSender(w http.ResponseWriter, r *http.Request) bool {
	token, sent := strings.CutPrefix(r.Header.Get("Authorization"), bearer)
	if !sent {
		token = ""
	}
	switch {
	case a.isKnownSender(r, token):
		return true
	case a.Tokens == nil && !a.Certificates:
		a.reportDenied(DeniedAll)
		writeProblem(w, http.StatusForbidden, "no sender is known: start evictrail with --audit-token-file, or with --tls-client-ca-file")
		return false
	}
	a.reportDenied(DeniedCredentials)
	p := newProblem(http.StatusUnauthorized, "send a bearer token of --audit-token-file, or a client certificate that --tls-client-ca-file and --audit-client accept")
	p.challenge = challenge
	p.write(w)
	return false
}

func (a Access) reportDenied(cause string) {
	if a.Denied != nil {
		a.Denied(cause)
	}
}

// hasAcceptedCertificate reports whether the client's certificate was verified and bears an accepted name.
func (a Access) hasAcceptedCertificate(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	return len(a.Clients) == 0 || slices.ContainsFunc(namesOf(r.TLS.VerifiedChains[0][0]), func(name string) bool {
		return slices.Contains(a.Clients, name)
	})
}

func namesOf(c *x509.Certificate) []string {
	return append([]string{c.Subject.CommonName}, c.DNSNames...)
}

// isAcceptedSecret compares a secret with each that is accepted, in a time that reveals nothing about them.
func (a Access) isAcceptedSecret(secret string) bool {
	known, err := a.Tokens()
	if secret == "" || err != nil {
		return false
	}
	sent, found := sha256.Sum256([]byte(secret)), 0
	for _, k := range known {
		sum := sha256.Sum256([]byte(k))
		found |= subtle.ConstantTimeCompare(sent[:], sum[:])
	}
	return found == 1
}
