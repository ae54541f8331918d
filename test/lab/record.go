package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evictrail/evictrail/test/lab/scenario"
	"github.com/evictrail/evictrail/test/lab/truth"
)

// truthFile is the name of the file that a recording has beside those of "evictrail record".
const truthFile = "truth.json"

// recordedTruth is what a recording is compared with: what the components said, none of which evictrail wrote, and the loops that the scenario expects.
type recordedTruth struct {
	Scenario string          `json:"scenario"`
	About    string          `json:"about"`
	KubeVirt string          `json:"kubeVirt"`
	Loops    []scenario.Loop `json:"loops"` // at the default thresholds; null where the scenario is played at others
	Seen     truth.History   `json:"seen"`
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
	r := recordedTruth{Scenario: of.Name, About: of.About, KubeVirt: kubeVirt, Seen: seen}
	if len(of.Flags) == 0 {
		r.Loops = append([]scenario.Loop{}, of.Expect.Loops...)
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.recording.Dir, truthFile), append(text, '\n'), 0o644)
}

// loadTruth reads the truth of a recording.
func loadTruth(dir string) (r recordedTruth, err error) {
	text, err := os.ReadFile(filepath.Join(dir, truthFile))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s of %s: %w", truthFile, dir, err)
	}
	return r, nil
}

// compareRecording compares the rows that evictrail derived from a recording with its truth.
func compareRecording(ctx context.Context, r recordedTruth, databaseURL, cluster string) (truth.Report, error) {
	rows, err := truth.Load(ctx, databaseURL, cluster)
	if err != nil {
		return truth.Report{}, err
	}
	report := truth.Compare(r.Seen, rows)
	if r.Loops == nil {
		return report, nil
	}
	found, err := loadLoops(ctx, databaseURL, cluster)
	report.Compared += len(r.Loops)
	report.Differences = append(report.Differences, compareLoops(r.Loops, found)...)
	return report, err
}
