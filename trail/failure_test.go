package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFailureTexts holds every substring of reference kubevirt-signals §6, as KubeVirt writes it.
func TestFailureTexts(t *testing.T) {
	t.Parallel()
	type row struct {
		text  string
		class FailureClass
		cause FailureReason
	}
	for _, c := range []row{
		// KubeVirt v1.3 to v1.8.
		{"Live migration stuck for 15 seconds and has been aborted", FailureDataPlane, CauseNoProgress},
		{"Live migration is not completed after 300 seconds and has been aborted", FailureDataPlane, CauseTooSlow},
		{"Live migration aborted ", FailureDataPlane, CauseMonitorAbort},
		{"operation aborted: migration out: canceled by client", FailureDataPlane, CauseMonitorAbort},
		{"Live migration failed error encountered during MigrateToURI3 libvirt api call: virError(Code=9, Domain=10, Message='operation failed')", FailureDataPlane, CauseLibvirt},
		{"destination volume is smaller then the source volume", FailureDataPlane, CauseVolumeTooSmall},
		{"Failed migration to satisfy functional test condition", FailureDataPlane, CauseTestHook},
		// KubeVirt v1.9.
		{"Live migration has been aborted", FailureDataPlane, CauseMonitorAbort},
		{"virError(Code=9, Domain=10, Message='operation failed: migration out job: unexpectedly failed')", FailureDataPlane, CauseLibvirt},
		{"destination volume is smaller than the source volume", FailureDataPlane, CauseVolumeTooSmall},
		{"error encountered during preparing domain for migration: x", FailureDataPlane, CausePreparing},
		{"failed to get domain spec: x", FailureDataPlane, CausePreparing},
		{"error encountered while generating migration parameters: x", FailureDataPlane, CausePreparing},
		{"failed to retrive domain state", FailureDataPlane, CausePreparing},
		{"migration monitor failed to look up domain", FailureDataPlane, CausePreparing},
		{"Target pod is down", FailureControlPlane, CauseTargetDown},
		// libvirt's wording inside of either.
		{"virError(Code=38, Domain=7, Message='Unable to read from socket: Connection reset by peer')", FailureDataPlane, CauseConnection},
		{"virError(Message='Unable to write to socket: Broken pipe')", FailureDataPlane, CauseConnection},
		{"virError(Message='Connection reset by peer')", FailureDataPlane, CauseConnection},
		{"virError(Message='client socket is closed')", FailureDataPlane, CauseConnection},
		{"virError(Message='Cannot recv data: Input/output error')", FailureDataPlane, CauseConnection},
		{"virError(Message='unable to connect to server at 10.0.0.1')", FailureDataPlane, CauseConnection},
		{"virError(Message='End of file while reading data: Input/output error')", FailureDataPlane, CauseConnection},
		{"virError(Message='qemu unexpectedly closed the monitor')", FailureDataPlane, CauseTargetQEMU},
		{"virError(Message='Lost connection to destination host')", FailureDataPlane, CauseTargetQEMU},
		{"virError(Message='guest CPU doesn't match specification')", FailureDataPlane, CauseIncompatible},
		{"virError(Message='unsupported configuration: x')", FailureDataPlane, CauseIncompatible},
		{"virError(Message='target does not support x')", FailureDataPlane, CauseIncompatible},
		{`virError(Message='Failed to get "write" lock')`, FailureDataPlane, CauseStorage},
		{"virError(Message='Input/output error')", FailureDataPlane, CauseStorage},
		{"virError(Message='No space left on device')", FailureDataPlane, CauseStorage},
		{"virError(Message='cannot acquire state change lock')", FailureDataPlane, CauseStateLock},
	} {
		got, ok := matchText(reasonTexts, c.text)
		require.True(t, ok, c.text)
		require.Equal(t, row{c.text, c.class, c.cause}, row{c.text, got.class, got.cause})
	}
	for _, c := range []row{
		{"Migration target pod for VMI [shop/db] is currently unschedulable.", FailureScheduling, CauseUnschedulable},
		{"unschedulable pod shop/virt-launcher-db-x timeout period exceeded", FailureScheduling, CauseUnschedulable},
		{"Migration cannot proceed since no node is suitable to run the required CPU model / required features: Haswell", FailureScheduling, CauseNoCPUModel},
		{"pending pod shop/virt-launcher-db-x timeout period exceeded", FailureControlPlane, CausePendingTimeout},
		{"Migration failed because target pod was removed during active migration", FailureControlPlane, CauseTargetRemoved},
		{"Migration failed because target pod shutdown during migration", FailureControlPlane, CauseTargetCrashed},
		{"target attachment pod shutdown during migration", FailureControlPlane, CauseAttachmentCrashed},
		{"Target pod is down", FailureControlPlane, CauseTargetDown},
		{"pods is forbidden: exceeded quota: compute", FailureControlPlane, CauseQuota},
		{"Error creating pod: x", FailureControlPlane, CausePodRefused},
		{`pod violates PodSecurity "restricted"`, FailureControlPlane, CausePodRefused},
		{"VMI needs a privileged namespace", FailureControlPlane, CausePodRefused},
		{"timeout waiting for utility volumes to detach", FailureControlPlane, CauseUtilityVolumes},
		{"waiting for utility volumes", FailureControlPlane, CauseUtilityVolumes},
		{"Waiting for backup to finish", FailureControlPlane, CauseBackup},
		{"Aborting backup", FailureControlPlane, CauseBackup},
		{"cannot migrate until backup is done", FailureControlPlane, CauseBackup},
		{"source node reported migration failed", FailureDataPlane, CauseReported},
		{"another migration job is in progress", FailureControlPlane, CauseConcurrent},
		{"taken over by another migration job", FailureControlPlane, CauseConcurrent},
		{"in-flight migration detected. Active migration job (x)", FailureControlPlane, CauseConcurrent},
		{"migration state was cleared", FailureControlPlane, CauseStateLost},
		{"vmi does not exist", FailureControlPlane, CauseVMIGone},
		{"vmi shutdown during migration", FailureControlPlane, CauseVMIGone},
		{"x509 hostname error", FailureControlPlane, CauseDecentralizedHosts},
		{"failed to mount hotplug volumes", FailureControlPlane, CauseSync},
		{"failed to configure vmi network for migration target", FailureControlPlane, CauseSync},
		{"syncing migration target failed", FailureControlPlane, CauseSync},
		{"failed to adjust resources on migration target", FailureControlPlane, CauseSync},
		{"failed to handle post sync migration proxy", FailureControlPlane, CauseSync},
		{"failed to handle migration proxy", FailureControlPlane, CauseSync},
		{"VMI is irrecoverable due to failed post-copy migration", FailurePostCopy, CausePostCopy},
		{"The VirtualMachineInstance domain was never observed on the target after the migration completed", FailureGuestLost, CauseNeverObserved},
		{"The VirtualMachineInstance migrated to unknown host.", FailureGuestLost, CauseUnknownHost},
		{"Migration failed due to being canceled", FailureAborted, CauseUserAbort},
		{"migration canceled and pod x deleted", FailureAborted, CauseUserAbort},
	} {
		got, ok := matchText(eventTexts, c.text)
		require.True(t, ok, c.text)
		require.Equal(t, row{c.text, c.class, c.cause}, row{c.text, got.class, got.cause})
	}
}

// TestFailureWithoutText judges by the phase and the target pod.
func TestFailureWithoutText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	pod := func(reasons ...Reason) (facts []Fact) {
		for _, r := range reasons {
			facts = append(facts, Fact{Kind: KindLauncherPod, Reason: r})
		}
		return facts
	}
	for _, c := range []struct {
		name  string
		m     migration
		class FailureClass
		cause FailureReason
	}{
		{"nothing at all", migration{}, FailureUnknown, CauseNothingSaid},
		{"never got a pod", migration{Migration: Migration{PendingAt: at}}, FailureControlPlane, CauseBeforeHandOver},
		{"pod unschedulable", migration{Migration: Migration{PendingAt: at, SchedulingAt: at}, pods: pod(ReasonPodCreated, ReasonUnschedulable)}, FailureScheduling, CauseUnschedulable},
		{"unschedulable at first, then placed", migration{Migration: Migration{PendingAt: at, SchedulingAt: at}, pods: pod(ReasonUnschedulable, ReasonScheduled)}, FailureControlPlane, CauseBeforeHandOver},
		{"died while preparing", migration{Migration: Migration{PendingAt: at, ScheduledAt: at}, pods: pod(ReasonScheduled)}, FailureControlPlane, CauseBeforeStart},
		{"ran", migration{Migration: Migration{RunningAt: at}}, FailureDataPlane, CauseDuringTransfer},
		{"faked start", migration{Migration: Migration{ScheduledAt: at}, result: ResultDetail{StartedAt: at, EndedAt: at}}, FailureControlPlane, CauseBeforeStart},
		{"new text", migration{result: ResultDetail{Failed: true, FailureReason: "the moon was full"}}, FailureDataPlane, CauseReported},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.m.Outcome = OutcomeFailed
			got := c.m.classifyFailure(nil, nil)
			require.Equal(t, c.class, got.class)
			require.Equal(t, c.cause, got.cause)
			require.NotEmpty(t, got.evidence)
		})
	}
}
