package cluster

import (
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Admin is a user who may do everything, without a limit of requests.
func (c *Cluster) Admin() *rest.Config { return c.User("kubernetes-admin", "system:masters") }

// User is a user with a client certificate, which any name and groups get.
func (c *Cluster) User(name string, groups ...string) *rest.Config {
	return c.API.User(name, groups...)
}

// Client is the administrator's client.
func (c *Cluster) Client() kubernetes.Interface { return c.API.Client() }

// Kubeconfig writes a kubeconfig of a user into the host's folder, and returns its path.
func (c *Cluster) Kubeconfig(config *rest.Config, namespace string) (path string, err error) {
	err = c.host.Do(func() error {
		path = c.API.Kubeconfig(config, namespace)
		return nil
	})
	return path, err
}

// componentKubeconfig is Kubeconfig of a component, which is known by its user name alone.
func (c *Cluster) componentKubeconfig(user string, groups ...string) (string, error) {
	return c.Kubeconfig(c.User(user, groups...), "default")
}

// serviceAccount is a ServiceAccount with a certificate instead of a token: it does not expire, and names no pod.
func (c *Cluster) serviceAccount(namespace, name string) *rest.Config {
	return c.User("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
}
