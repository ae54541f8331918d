package kubetest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Admin is somebody who may do everything, without a limit of requests.
func (c *Cluster) Admin() *rest.Config { return c.User("kubernetes-admin", "system:masters") }

// User is a user with a client certificate. The API server knows users by their certificates alone: any name will do, that of a
// ServiceAccount as well.
func (c *Cluster) User(name string, groups ...string) *rest.Config {
	c.t.Helper()
	cert, err := c.CA.Client(name, groups...)
	if err != nil {
		c.t.Fatal(err)
	}
	config := c.anonymousConfig()
	config.CertData, config.KeyData = cert.Cert, cert.Key
	return config
}

// ServiceAccount is an existing ServiceAccount, with a token for the API server.
func (c *Cluster) ServiceAccount(namespace, name string) *rest.Config {
	c.t.Helper()
	config := c.anonymousConfig()
	config.BearerToken = c.Token(namespace, name)
	return config
}

// tokenLife is how long a token holds, in seconds: longer than the longest test. A kubelet would renew it.
const tokenLife = 24 * 60 * 60

// Token returns a new token of an existing ServiceAccount, for these audiences; without any, for the API server itself. It holds for a day.
func (c *Cluster) Token(namespace, name string, audiences ...string) string {
	c.t.Helper()
	answer, err := c.Client().CoreV1().ServiceAccounts(namespace).CreateToken(c.t.Context(), name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: new(int64(tokenLife))}}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatalf("ask for a token of %s/%s: %v", namespace, name, err)
	}
	return answer.Status.Token
}

func (c *Cluster) anonymousConfig() *rest.Config {
	return &rest.Config{Host: "https://" + c.addr, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA.PEM}, QPS: -1, WarningHandler: rest.NoWarnings{}}
}

// Client is the administrator's.
func (c *Cluster) Client() kubernetes.Interface { return ClientOf(c.t, c.Admin()) }

// ClientOf is a client of who the configuration says.
func ClientOf(tb TB, config *rest.Config) kubernetes.Interface {
	tb.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

var kubeconfigs atomic.Int64

// Kubeconfig writes a kubeconfig file, and returns its path. Its namespace is the current one.
func (c *Cluster) Kubeconfig(config *rest.Config, namespace string) string {
	c.t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	k.CurrentContext = "x"
	dir := filepath.Join(c.dir, "kubeconfigs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%d.yaml", kubeconfigs.Add(1)))
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		c.t.Fatal(err)
	}
	return path
}
