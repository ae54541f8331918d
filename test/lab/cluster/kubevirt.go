package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/evictrail/evictrail/test/ports"
)

const kubeVirtNamespace = "kubevirt"

var (
	kubeVirtResource   = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	apiServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// installKubeVirt does what virt-operator does, but for workloads.
func (c *Cluster) installKubeVirt(ctx context.Context, m manifests) error {
	if err := c.ensureNamespace(kubeVirtNamespace); err != nil {
		return err
	}
	if err := c.createObjects(ctx, m.rest...); err != nil {
		return err
	}
	ca := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: kubeVirtNamespace, Name: "kubevirt-ca"},
		Data:       map[string]string{"ca-bundle": string(c.API.CA.PEM)},
	}
	if _, err := c.Client().CoreV1().ConfigMaps(ca.Namespace).Create(ctx, ca, metav1.CreateOptions{}); err != nil {
		return err
	}
	// The aggregated API is reached through a Service, which leads to this machine.
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: kubeVirtNamespace, Name: "virt-api"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	if _, err := c.Client().CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	// Clusters authorize kubelets by node; here, they may do what kubelets do on all nodes.
	kubelets := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lab:kubelets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}},
	}
	if _, err := c.Client().RbacV1().ClusterRoleBindings().Create(ctx, kubelets, metav1.CreateOptions{}); err != nil {
		return err
	}
	return c.configureKubeVirt(ctx)
}

// configureKubeVirt makes the object KubeVirt, as virt-operator leaves it when all is deployed.
func (c *Cluster) configureKubeVirt(ctx context.Context) error {
	gates := []any{}
	for _, gate := range c.options.FeatureGates {
		gates = append(gates, gate)
	}
	migrations := map[string]any{"parallelMigrationsPerCluster": int64(5), "parallelOutboundMigrationsPerNode": int64(2)}
	maps.Copy(migrations, c.options.Migrations)
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
		"metadata": map[string]any{"namespace": kubeVirtNamespace, "name": "kubevirt"},
		"spec": map[string]any{
			"configuration": map[string]any{
				"developerConfiguration": map[string]any{"featureGates": gates},
				"evictionStrategy":       "LiveMigrate",
				"migrations":             migrations,
			},
			"workloadUpdateStrategy": map[string]any{"workloadUpdateMethods": []any{"LiveMigrate"}},
		},
	}}
	client, err := c.newDynamicClient()
	if err != nil {
		return err
	}
	resource := client.Resource(kubeVirtResource).Namespace(kubeVirtNamespace)
	made, err := resource.Create(ctx, config, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create KubeVirt: %w", err)
	}
	made.Object["status"] = map[string]any{
		"phase": "Deployed", "defaultArchitecture": "amd64", "outdatedVirtualMachineInstanceWorkloads": int64(0),
		"operatorVersion": c.options.KubeVirt, "observedKubeVirtVersion": c.options.KubeVirt, "targetKubeVirtVersion": c.options.KubeVirt,
		"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "AllComponentsReady", "message": "AllComponentsReady"}},
	}
	if _, err := resource.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update status of KubeVirt: %w", err)
	}
	return nil
}

// startKubeVirt starts virt-api and virt-controller, and has the API server ask virt-api. It returns when virt-controller leads.
func (c *Cluster) startKubeVirt(ctx context.Context, hooks []*unstructured.Unstructured) error {
	port, err := c.startVirtAPI()
	if err != nil {
		return err
	}
	if err := c.startVirtController(); err != nil {
		return err
	}
	// The webhooks fail closed: before virt-api listens, nothing of KubeVirt could be made.
	err = c.Await(ctx, "virt-api listens", func(ctx context.Context) (bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		return err
	}
	for _, o := range hooks {
		if err := redirectToVirtAPI(o, port, c.API.CA.PEM); err != nil {
			return err
		}
	}
	if err := c.createObjects(ctx, hooks...); err != nil {
		return err
	}
	return errors.Join(c.awaitLeader(ctx), c.awaitSubresources(ctx))
}

func (c *Cluster) startVirtAPI() (port int, err error) {
	kubeconfig, err := c.accountKubeconfig("kubevirt-apiserver")
	if err != nil {
		return 0, err
	}
	cert, key, err := c.serverCertificate("virt-api", "virt-api.kubevirt.svc", "virt-api.kubevirt")
	if err != nil {
		return 0, err
	}
	port, err = c.freePort()
	if err != nil {
		return 0, err
	}
	err = c.startComponent("virt-api", "--kubeconfig="+kubeconfig, "--listen=127.0.0.1", "--port="+strconv.Itoa(port),
		"--tls-cert-file="+cert, "--tls-key-file="+key, "--handler-cert-file="+cert, "--handler-key-file="+key, "-v=2")
	return port, err
}

func (c *Cluster) startVirtController() error {
	kubeconfig, err := c.accountKubeconfig("kubevirt-controller")
	if err != nil {
		return err
	}
	cert, key, err := c.serverCertificate("virt-controller", "virt-controller.kubevirt.svc")
	if err != nil {
		return err
	}
	port, err := c.freePort()
	if err != nil {
		return err
	}
	return c.startComponent("virt-controller", "--kubeconfig="+kubeconfig, "--listen=127.0.0.1", "--port="+strconv.Itoa(port),
		"--prom-cert-file="+cert, "--prom-key-file="+key, "--exporter-image=virt-exportserver:"+c.options.KubeVirt, "-v=3",
		launcherFlag+"virt-launcher:"+c.options.KubeVirt)
}

// launcherFlag is the flag by which virt-controller knows the image of virt-launcher.
const launcherFlag = "--launcher-image="

// SetLauncherImage starts virt-controller again with another image of virt-launcher, as an upgrade of KubeVirt does: VMs that run in the old one are
// outdated.
func (c *Cluster) SetLauncherImage(image string) error {
	p, err := c.Component("virt-controller")
	if err != nil {
		return err
	}
	p.Kill()
	p.setFlag(launcherFlag, image)
	return p.Start()
}

// awaitLeader waits until virt-controller has its lease, after which it starts its controllers.
func (c *Cluster) awaitLeader(ctx context.Context) error {
	return c.Await(ctx, "virt-controller leads", func(ctx context.Context) (bool, error) {
		lease, err := c.Client().CoordinationV1().Leases(kubeVirtNamespace).Get(ctx, "virt-controller", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})
}

// awaitSubresources waits until the API server reaches the API that virt-api aggregates.
func (c *Cluster) awaitSubresources(ctx context.Context) error {
	client, err := c.newDynamicClient()
	if err != nil {
		return err
	}
	return c.Await(ctx, "subresources.kubevirt.io is available", func(ctx context.Context) (bool, error) {
		o, err := client.Resource(apiServiceResource).Get(ctx, "v1.subresources.kubevirt.io", metav1.GetOptions{})
		if err != nil {
			return false, nil
		}
		return Condition(o, "Available") == "True", nil
	})
}

func (c *Cluster) accountKubeconfig(name string) (string, error) {
	return c.Kubeconfig(c.serviceAccount(kubeVirtNamespace, name), kubeVirtNamespace)
}

// serverCertificate writes a certificate for a server on this machine, and returns the paths of the certificate and its key.
func (c *Cluster) serverCertificate(name string, dns ...string) (cert, key string, err error) {
	signed, err := c.API.CA.Server(dns...)
	if err != nil {
		return "", "", err
	}
	// KubeVirt reads its certificates again with every change in their folder: no log may lie there.
	dir := filepath.Join(c.host.Dir, "certificates")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", err
	}
	return signed.Write(dir, name)
}

func (c *Cluster) freePort() (port int, err error) {
	err = c.host.Do(func() error {
		_, text, err := net.SplitHostPort(ports.Free(c.host))
		if err != nil {
			return err
		}
		port, err = strconv.Atoi(text)
		return err
	})
	return port, err
}

// AuditFile is the path of the audit log, one event a line.
func (c *Cluster) AuditFile() string { return filepath.Clean(c.API.AuditFile()) }
