package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evictrail/evictrail/test/cluster/kubetest"
)

// Recording is an "evictrail record" beside the replicas: it writes what the cluster says, for "evictrail play".
type Recording struct {
	Dir     string // of the files
	process *kubetest.Process
}

// Record begins a recording in a folder that is not there yet, with the rights of a kubeconfig, the audit log of the API server and more flags.
// It returns when everything is watched.
func (r *Recorder) Record(dir, kubeconfig, auditFile string, flags ...string) (*Recording, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return nil, err
	}
	args := append([]string{"record", dir, "--kubeconfig", kubeconfig, "--audit-file", auditFile, "--log-level", "info"}, flags...)
	p := kubetest.StartProcess(r.t, filepath.Join(r.dir, "record.log"), r.program, args...)
	if err := r.awaitProcess(p, func() error {
		if trace, err := os.Stat(filepath.Join(dir, "trace.jsonl.gz")); err != nil || trace.Size() == 0 {
			return fmt.Errorf("nothing is recorded: %s", p.Output())
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return &Recording{Dir: dir, process: p}, nil
}

// Stop ends the recording, which is whole then.
func (r *Recording) Stop() error {
	if err := r.process.Stop(); err != nil {
		return errors.Join(fmt.Errorf("end the recording: %w", err), errors.New(r.process.Output()))
	}
	return nil
}
