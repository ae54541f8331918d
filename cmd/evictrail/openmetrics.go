package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// scrapeEvery is the time between two samples of a recording's metrics: that of a usual scrape.
const scrapeEvery = 15 * time.Second

// samples are what a Prometheus would have scraped in the time of a recording.
type samples struct {
	from     prometheus.Gatherer
	file     *os.File                     // where they will be written
	families map[string]*dto.MetricFamily // each with its metrics once for each sample, in the order of their times
}

// newSamples makes the file at once: that it cannot be written should not be reported only after all was played.
func newSamples(from prometheus.Gatherer, path string) (*samples, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("write metrics: %w", err)
	}
	return &samples{from: from, file: file, families: map[string]*dto.MetricFamily{}}, nil
}

// gatherSample takes a sample of everything at a time.
func (s *samples) gatherSample(at time.Time) error {
	gathered, err := s.from.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	stamp := at.UnixMilli()
	for _, family := range gathered {
		for _, m := range family.Metric {
			m.TimestampMs = &stamp
		}
		if known := s.families[family.GetName()]; known != nil {
			known.Metric = append(known.Metric, family.Metric...)
		} else {
			s.families[family.GetName()] = family
		}
	}
	return nil
}

// writeSamples writes all samples in the OpenMetrics text format: the samples of each series together, in the order of their times.
func (s *samples) writeSamples() (err error) {
	defer func() { err = cmp.Or(err, s.file.Close()) }()
	out := bufio.NewWriter(s.file)
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		if err := writeFamily(out, s.families[name]); err != nil {
			return fmt.Errorf("write metrics: %s: %w", name, err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(out); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return out.Flush()
}

func writeFamily(out io.Writer, family *dto.MetricFamily) error {
	keys := make(map[*dto.Metric]string, len(family.Metric))
	for _, m := range family.Metric {
		var key strings.Builder
		for _, l := range m.Label {
			key.WriteString(l.GetName() + "\xff" + l.GetValue() + "\xff")
		}
		keys[m] = key.String()
	}
	slices.SortStableFunc(family.Metric, func(a, b *dto.Metric) int { return strings.Compare(keys[a], keys[b]) })
	_, err := expfmt.MetricFamilyToOpenMetrics(out, family)
	return err
}
