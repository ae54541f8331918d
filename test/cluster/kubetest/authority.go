package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates.
type Authority struct {
	PEM  []byte // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is a certificate with its key, both PEM.
type Certificate struct{ Cert, Key []byte }

// NewAuthority makes an authority of that name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a := &Authority{key: key}
	der, err := a.signCertificate(template, template, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	a.PEM = toPEM("CERTIFICATE", der)
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// Server signs a certificate for a server on 127.0.0.1, and of these DNS names.
func (a *Authority) Server(names ...string) (Certificate, error) {
	return a.issueCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, DNSNames: append(names, "localhost"), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client signs a certificate for a client: for an API server its user and groups.
func (a *Authority) Client(user string, groups ...string) (Certificate, error) {
	return a.issueCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) issueCertificate(template *x509.Certificate) (Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Certificate{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := a.signCertificate(template, a.cert, &key.PublicKey)
	if err != nil {
		return Certificate{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	return Certificate{toPEM("CERTIFICATE", der), toPEM("EC PRIVATE KEY", private)}, err
}

func (a *Authority) signCertificate(template, parent *x509.Certificate, key *ecdsa.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

func toPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Write writes the certificate and its key into a folder, as NAME.crt and NAME.key, and returns their paths.
func (c Certificate) Write(dir, name string) (cert, key string, err error) {
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := os.WriteFile(cert, c.Cert, 0o600); err != nil {
		return "", "", err
	}
	return cert, key, os.WriteFile(key, c.Key, 0o600)
}

// signingKey makes the key pair with which an API server signs the tokens of ServiceAccounts.
func signingKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	return toPEM("EC PRIVATE KEY", der), toPEM("PUBLIC KEY", pub), err
}
