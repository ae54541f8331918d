package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/evictrail/evictrail"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// TestRecord has evictrail record a cluster, under the rights that it ships with, while a story happens in it; plays what it recorded; and compares
// that with what really happened.
func TestRecord(t *testing.T) {
	t.Parallel()
	const name = "a-descheduler-eviction-success"
	rec, err := recording.Open(evictrail.Recordings(), name, nil)
	require.NoError(t, err)
	s := newSite(t, siteOptions{version: versionOf(t, rec), deaf: true})
	p := newPlayer(t, s, rec)
	program, err := build.Evictrail()
	require.NoError(t, err)
	dir := filepath.Join(s.dir, name)
	recorder := kubetest.StartProcess(t, filepath.Join(s.dir, "record.log"), program, "record", dir, "--kubeconfig", s.kubeconfig,
		"--audit-file", s.AuditFile(), "--descheduler-configmap", policyNamespace+"/"+policyName)
	lines := func() int {
		got, err := recording.Open(os.DirFS(s.dir), name, nil)
		if err != nil {
			return 0
		}
		return len(got.Lines)
	}
	require.Eventually(t, func() bool { return lines() > 20 }, 3*time.Minute, 200*time.Millisecond)
	p.play()
	before, since := -1, time.Now()
	require.Eventually(t, func() bool {
		if n := lines(); n != before {
			before, since = n, time.Now()
		}
		return time.Since(since) > 5*time.Second
	}, time.Minute, 500*time.Millisecond)
	require.NoError(t, recorder.Stop())
	require.Contains(t, recorder.Output(), "the descheduler's policy")
	require.NotContains(t, recorder.Output(), "not recorded")

	url := storetest.NewURL(t)
	out, err := exec.CommandContext(t.Context(), program, "play", dir, "--database-url", url).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, loadRows[any](t, url, "SELECT * FROM evictrail_v1.gaps"))
	compareRecording(t, url, name, p.clock)
}

// TestDoctor has evictrail look at a cluster under the rights that it ships with, and without each of them.
func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newSite(t, siteOptions{deaf: true})
	s.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + policyName + ", namespace: " + policyNamespace + "}, data: {policy.yaml: \"{apiVersion: descheduler/v1alpha2, kind: DeschedulerPolicy}\"}}")
	s.Apply("{apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: kubevirt, namespace: kubevirt}}")
	program, err := build.Evictrail()
	require.NoError(t, err)
	url := storetest.NewURL(t)
	look := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"doctor", "--kubeconfig", s.kubeconfig, "--database-url", url}, everything...)...).CombinedOutput()
		return string(out), err
	}
	text, err := look()
	require.NoError(t, err, text)
	require.Regexp(t, `(?m)^warn +kubevirt +version "" is of no known form`, text)
	all := parseRights(t, renderShippedRights(t))
	require.Regexp(t, fmt.Sprintf(`(?m)^ok +rights +%d granted`, len(all)), text)
	require.Regexp(t, `(?m)^ok +descheduler policy +read`, text)
	for _, r := range all {
		s.Apply(removeRight(t, renderShippedRights(t), r))
		require.Eventually(t, func() bool {
			text, err = look()
			return err != nil
		}, time.Minute, 100*time.Millisecond, "without the right to %s nothing is said", r)
		require.Regexp(t, `(?m)^fail +rights +lacking: `+r.verb+` `+r.resource, text)
	}
}
