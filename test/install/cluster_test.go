package install_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// installation is an API server with a namespace evictrail that takes restricted pods only, and who asks it.
type installation struct {
	*kubetest.Cluster
	kubeconfig string
}

func newInstallation(t *testing.T) installation {
	t.Helper()
	c := kubetest.Start(t, kubetest.Options{})
	i := installation{c, c.Kubeconfig(c.Admin(), namespace)}
	i.runKubectl(t, "apply", "-f", "testdata/crds/kinds.yaml")
	i.runKubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	i.createNamespace(t)
	for _, more := range []string{"monitoring", "openshift-kube-descheduler-operator"} {
		c.Namespace(more, nil)
	}
	return i
}

// createNamespace makes the namespace of evictrail.
func (i installation) createNamespace(t *testing.T) {
	t.Helper()
	i.Namespace(namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"})
}

func (i installation) runKubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runProgram(t, buildKubectl, append(args, "--kubeconfig", i.kubeconfig)...)
	require.NoError(t, err, out)
	return out
}

// runHelm runs helm without its hooks: there is nobody in the cluster who would run a Job.
func (i installation) runHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runProgram(t, buildHelm, append(args, "--kubeconfig", i.kubeconfig, "--namespace", namespace)...)
	require.NoError(t, err, out)
	return out
}

// tryCreatePod asks for a pod of that template, as the controllers of Kubernetes do, and takes it away again.
func (i installation) tryCreatePod(ctx context.Context, template corev1.PodTemplateSpec) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "try", Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
	pods := i.Client().CoreV1().Pods(namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		return err
	}
	return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// TestAnAPIServerTakesTheChart applies what the chart makes of each set of values, with every field known, and has pods made of
// its templates in a namespace that enforces the restricted standard.
func TestAnAPIServerTakesTheChart(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	for _, values := range valueSets(t) {
		text := renderChart(t, chart, values, "--set=prometheusRule.enabled=true,dashboards.enabled=true")
		file := filepath.Join(t.TempDir(), "evictrail.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		i.runKubectl(t, "apply", "--server-side", "--validate=strict", "-f", file)
		for kind, template := range parsePodTemplates(t, text) {
			template.Spec.Volumes = withoutClaims(template)
			require.NoError(t, i.tryCreatePod(t.Context(), template), "%s of %s", kind, values)
		}
		i.runKubectl(t, "delete", "-f", file, "--wait=false")
	}

	loose := parsePodTemplates(t, renderChart(t, chart, "testdata/small.yaml"))["Pod"]
	loose.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true)
	require.True(t, apierrors.IsForbidden(i.tryCreatePod(t.Context(), loose)), "the namespace does enforce it")
}

// withoutClaims returns the volumes of a pod, with one for each mount that a StatefulSet would fill with a claim.
func withoutClaims(template corev1.PodTemplateSpec) []corev1.Volume {
	known := map[string]bool{}
	for _, v := range template.Spec.Volumes {
		known[v.Name] = true
	}
	volumes := template.Spec.Volumes
	for _, m := range template.Spec.Containers[0].VolumeMounts {
		if !known[m.Name] {
			claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Name + "-evictrail-0"}
			volumes = append(volumes, corev1.Volume{Name: m.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
		}
	}
	return volumes
}

// TestAnAPIServerTakesTheOverlays applies each as users do.
func TestAnAPIServerTakesTheOverlays(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	all, err := filepath.Glob(filepath.Join(overlays, "*"))
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, dir := range append(all, base) {
		i.runKubectl(t, "apply", "--server-side", "--validate=strict", "-k", dir)
		text, err := runProgram(t, buildKubectl, "kustomize", dir)
		require.NoError(t, err)
		template := parsePodTemplates(t, text)["StatefulSet"]
		template.Spec.Volumes = withoutClaims(template)
		require.NoError(t, i.tryCreatePod(t.Context(), template), dir)
		i.runKubectl(t, "delete", "-k", dir, "--wait=false")
	}
}

// TestUpgrade installs the first chart, upgrades it to this one, and goes back: no field that cannot be changed has changed, and
// the certificate that was made stays.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	const first = "testdata/charts/evictrail-0.1.0.tgz"
	i := newInstallation(t)
	client := i.Client()
	certificate := func() []byte {
		secret, err := client.CoreV1().Secrets(namespace).Get(t.Context(), "evictrail-tls", metav1.GetOptions{})
		require.NoError(t, err)
		return secret.Data["tls.crt"]
	}
	set := func() string {
		set, err := client.AppsV1().StatefulSets(namespace).Get(t.Context(), "evictrail", metav1.GetOptions{})
		require.NoError(t, err)
		return string(set.UID)
	}
	values := []string{"--no-hooks", "--set=database.url=postgres://evictrail@db.example/evictrail,observer.enabled=true,networkPolicy.apiServerCIDRs={10.0.0.0/28}"}
	i.runHelm(t, append([]string{"install", "evictrail", first}, values...)...)
	made, uid := certificate(), set()
	require.NotEmpty(t, made)

	out := i.runHelm(t, append([]string{"upgrade", "evictrail", chart, "--set=replicas=3,serviceMonitor.enabled=true,resources.limits.memory=1Gi"}, values...)...)
	require.Contains(t, out, "REVISION: 2")
	require.Equal(t, made, certificate(), "kept")
	require.Equal(t, uid, set(), "changed in place")

	out, err := runProgram(t, buildHelm, append([]string{"upgrade", "evictrail", chart, "--kubeconfig", i.kubeconfig, "--namespace", namespace, "--set=spool.size=6Gi"}, values...)...)
	require.Error(t, err)
	require.Regexp(t, `spec.volumeClaimTemplates: .*immutable`, out, "what must not change an API server refuses to change")

	i.runHelm(t, "rollback", "evictrail", "1", "--no-hooks")
	require.Equal(t, made, certificate(), "kept")
	require.Equal(t, uid, set(), "changed in place")

	i.runHelm(t, "uninstall", "evictrail", "--no-hooks", "--cascade=background")
	for _, kind := range []string{"clusterroles", "clusterrolebindings", "validatingwebhookconfigurations", "validatingadmissionpolicies"} {
		require.Empty(t, i.runKubectl(t, "get", kind, "--selector=app.kubernetes.io/part-of=evictrail", "--output=name"), "nothing is left in the cluster")
	}
}
