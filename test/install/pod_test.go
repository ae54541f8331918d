package install_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/evictrail/evictrail/test/build"
)

// parsePodTemplates are those that a rendering makes, by the kind of what makes them.
func parsePodTemplates(t *testing.T, text string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	into := func(o *unstructured.Unstructured, typed any) {
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true))
	}
	for _, o := range parseObjects(t, text) {
		switch o.GetKind() {
		case "StatefulSet":
			var set appsv1.StatefulSet
			into(o, &set)
			out["StatefulSet"] = set.Spec.Template
		case "Job":
			var job batchv1.Job
			into(o, &job)
			out["Job"] = job.Spec.Template
		case "Pod":
			var pod corev1.Pod
			into(o, &pod)
			out["Pod"] = corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
		}
	}
	return out
}

// TestPodsAreRestricted asks the code with which API servers enforce pod-security.kubernetes.io/enforce=restricted, and what
// that does not ask for.
func TestPodsAreRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, values := range valueSets(t) {
		all := parsePodTemplates(t, renderChart(t, chart, values))
		require.Len(t, all, 3)
		for kind, pod := range all {
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				require.True(t, result.Allowed, "%s of %s: %s: %s", kind, values, result.ForbiddenReason, result.ForbiddenDetail)
			}
			require.Equal(t, kind == "StatefulSet", *pod.Spec.AutomountServiceAccountToken, "only who asks the cluster has a token")
			if values == "testdata/openshift.yaml" {
				require.Nil(t, pod.Spec.SecurityContext.RunAsUser, "OpenShift assigns a uid out of the namespace's range")
				require.Nil(t, pod.Spec.SecurityContext.FSGroup)
			} else {
				require.EqualValues(t, 65532, *pod.Spec.SecurityContext.RunAsUser)
			}
			for _, container := range pod.Spec.Containers {
				require.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
				for _, mount := range container.VolumeMounts {
					require.Equal(t, mount.Name != "spool", mount.ReadOnly, "%s: only the spool can be written", mount.Name)
				}
			}
		}
	}
}

// TestEveryFlagIsKnown: the arguments are those of this evictrail.
func TestEveryFlagIsKnown(t *testing.T) {
	t.Parallel()
	for _, values := range append(valueSets(t), "--set=database.url=postgres://evictrail@db.example/evictrail,database.sslmode=require") {
		for kind, pod := range parsePodTemplates(t, renderChart(t, chart, values)) {
			args := pod.Spec.Containers[0].Args
			flags := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
			command := args
			if flags >= 0 {
				command = args[:flags]
			}
			help, err := runProgram(t, build.Evictrail, append(slices.Clone(command), "--help")...)
			require.NoError(t, err, help)
			for _, arg := range args[len(command):] {
				name, _, _ := strings.Cut(arg, "=")
				require.Regexp(t, `(?m)^ +(-., )?`+name+`\b`, help, "%s of %s: evictrail %s knows no such flag", kind, values, strings.Join(command, " "))
			}
			for _, variable := range pod.Spec.Containers[0].Env {
				if name, ours := strings.CutPrefix(variable.Name, "EVICTRAIL_"); ours {
					flag := "--" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
					require.Regexp(t, `(?m)^ +(-., )?`+flag+`\b`, help, "%s of %s: no flag has the variable %s", kind, values, variable.Name)
				}
			}
		}
	}
}

// TestNothingSecretIsSaid in flags, in the environment, or in an object: secrets are mounted, by their names.
func TestNothingSecretIsSaid(t *testing.T) {
	t.Parallel()
	for _, values := range valueSets(t) {
		text := renderChart(t, chart, values)
		for kind, pod := range parsePodTemplates(t, text) {
			for _, container := range pod.Spec.Containers {
				require.Empty(t, container.EnvFrom)
				for _, variable := range container.Env {
					require.True(t, variable.ValueFrom == nil || variable.ValueFrom.SecretKeyRef == nil, "%s: %s", kind, variable.Name)
					require.NotRegexp(t, `://[^@/]*:[^@/]*@|password=`, variable.Value)
				}
			}
		}
		for _, o := range parseObjects(t, text) {
			if o.GetName() == "evictrail-admission" {
				continue // the path by which the observer knows API servers, made where no secret of yours is named
			}
			require.NotEqual(t, "Secret", o.GetKind(), "only tls.source generated makes another")
		}
	}
}

// TestMemory: GOMEMLIMIT is nine tenths of the limit, however that is written.
func TestMemory(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]string{"512Mi": "483183820", "1G": "900000000", "1.5Gi": "1449551462", "700000000": "630000000"} {
		pod := parsePodTemplates(t, renderChart(t, chart, "testdata/small.yaml", "--set-string=resources.limits.memory="+limit))["StatefulSet"]
		env := pod.Spec.Containers[0].Env
		i := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
		require.Equal(t, want, env[i].Value, limit)
	}
}

// TestImage holds what the Dockerfile says against what pods are set to: the uid, and that nothing but the binary is there.
func TestImage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "deploy/Dockerfile"))
	require.NoError(t, err)
	_, final, found := strings.Cut(string(text), "\nFROM scratch\n")
	require.True(t, found)
	require.NotContains(t, final, "\nFROM ")
	require.NotContains(t, final, "RUN ")
	require.Contains(t, final, "\nUSER 65532:65532\n")
	require.Contains(t, final, "\nENTRYPOINT [\"/evictrail\"]\n")
	require.Contains(t, final, "\nENV PATH=/\n", "runbooks have `kubectl exec evictrail-0 -- evictrail ...`")
	require.Contains(t, string(text), "CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH make build")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))
	require.Regexp(t, `golang:`+regexp.QuoteMeta(version[1])+`\.\d+@sha256:`, string(text), "built with the Go of go.mod")
}
