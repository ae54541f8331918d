package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/evictrail/evictrail/test/lab/scenario"
	"github.com/evictrail/evictrail/test/lab/truth"
)

// truthFile is what a recording has beside the files of "evictrail record".
const truthFile = "truth.json"

// recorded is the truth of a recording: what the components said, none of which evictrail wrote, and which loops the scenario expects.
type recorded struct {
	Scenario string
	About    string
	KubeVirt string
	Seen     truth.History
	Loops    []scenario.Loop // at the default thresholds; null where the scenario is played at others
}

// finishRecording ends the recording of a scenario and writes its truth.
func (s *stage) finishRecording(of scenario.Scenario, kubeVirt string) error {
	if s.recording == nil {
		return nil
	}
	if err := s.recording.Stop(); err != nil {
		return err
	}
	seen, err := s.History()
	if err != nil {
		return err
	}
	r := recorded{Scenario: of.Name, About: of.About, KubeVirt: kubeVirt, Seen: seen}
	if len(of.Flags) == 0 {
		r.Loops = append([]scenario.Loop{}, of.Expect.Loops...)
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.recording.Dir, truthFile), append(text, '\n'), 0o644)
}
