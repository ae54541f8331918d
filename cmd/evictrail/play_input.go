package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/evictrail/evictrail/collector"
	"github.com/evictrail/evictrail/collector/recording"
	"github.com/evictrail/evictrail/trail"
)

// playInput is what "evictrail play" plays: the recording of a cluster, or the facts of one incident.
type playInput struct {
	name string // of the folder or the file
	size string // in words
	play func(ctx context.Context, p player, cluster string) error
}

// openInput reads the folder or the file at a path.
func (f *playFlags) openInput(cmd *cobra.Command, path string) (playInput, error) {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		for _, flag := range []string{
			"no-audit", "audit-delay", "cut-every", "expire-every", "speed", "metrics-out", "prometheus-url",
		} {
			if cmd.Flags().Changed(flag) {
				return playInput{}, usageErrorf("%s has no meaning for a file of facts", flag)
			}
		}
		return openFacts(path)
	}
	rec, err := recording.Open(os.DirFS(filepath.Dir(path)), filepath.Base(path), collector.Check)
	if err != nil {
		return playInput{}, err
	}
	if f.noAudit {
		rec.Audit = nil
	}
	return playInput{
		name: rec.Name, size: fmt.Sprintf("%d lines", len(rec.Lines)),
		play: func(ctx context.Context, p player, cluster string) error { return p.playRecording(ctx, rec, cluster) },
	}, nil
}

// factsTogether is how many facts are stored and derived at once.
const factsTogether = 500

// openFacts reads a file of facts, one a line, as trail.WriteFact writes them.
func openFacts(path string) (playInput, error) {
	file, err := os.Open(path)
	if err != nil {
		return playInput{}, err
	}
	defer func() { _ = file.Close() }()
	facts, err := readFacts(file)
	if err != nil {
		return playInput{}, fmt.Errorf("%s: %w", path, err)
	}
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return playInput{
		name: name, size: fmt.Sprintf("%d facts", len(facts)),
		play: func(ctx context.Context, p player, cluster string) error { return p.playFacts(ctx, facts, cluster) },
	}, nil
}

// mostBytesPerFact bounds a line of a file of facts, in bytes.
const mostBytesPerFact = 16 << 20

// readFacts reads facts, sorted by when they were seen.
func readFacts(in io.Reader) (facts []trail.Fact, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostBytesPerFact)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		f, err := trail.ReadFact("", lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w (expected facts as in vm/facts.jsonl of a support bundle)", n, err)
		}
		facts = append(facts, f)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(facts) == 0 {
		return nil, errors.New("there are no facts in it")
	}
	slices.SortStableFunc(facts, func(a, b trail.Fact) int { return a.ObservedAt.Compare(b.ObservedAt) })
	return facts, nil
}

// playFacts returns when the facts are stored and derived, as of when the last one was seen.
func (p player) playFacts(ctx context.Context, facts []trail.Fact, cluster string) error {
	sink, err := p.beginReplay(ctx, cluster)
	if err != nil {
		return err
	}
	for i := range facts {
		facts[i].Cluster = cluster
	}
	for some := range slices.Chunk(facts, factsTogether) {
		if _, err := sink.Append(ctx, some); err != nil {
			return err
		}
	}
	return p.finishRecording(ctx, sink, cluster, facts[len(facts)-1].ObservedAt)
}
