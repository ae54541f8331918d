package collector

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/evictrail/evictrail/trail"
)

// The bounds of the text of metrics. What is kept of it takes about ten times as much memory once it is parsed.
const (
	scrapeLimit = 32 << 20 // bytes of an answer, unpacked
	keptLimit   = 8 << 20  // bytes of the lines that are kept
	maxLine     = 64 << 10 // bytes of a line
	maxSeries   = 50_000   // lines that are kept: a series, or a bucket of a histogram
)

// keptMetrics begins the names of the metrics that are read and recorded, beside the start of the process.
const keptMetrics = "descheduler_"

// readFamilies reads those of the metrics of a descheduler that are kept, with their texts clipped. The others are not even parsed.
func readFamilies(body io.Reader) (map[string]*dto.MetricFamily, error) {
	kept, err := readLines(body)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(kept)
	if err != nil {
		return nil, clipError(err)
	}
	for _, family := range families {
		family.Help = new(trail.ClipText(family.GetHelp(), maxMessage))
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				l.Value = new(trail.ClipText(l.GetValue(), maxName))
			}
		}
	}
	return families, nil
}

// readLines reads the lines of a text that are about metrics which are kept.
func readLines(body io.Reader) (*bytes.Buffer, error) {
	limited := &io.LimitedReader{R: body, N: scrapeLimit + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxLine)
	lines.Split(splitWhole)
	var kept bytes.Buffer
	series := 0
	for lines.Scan() {
		line := bytes.TrimLeft(lines.Bytes(), " \t")
		if !isKept(metricOf(line)) {
			continue
		}
		if line[0] != '#' {
			series++
		}
		if series > maxSeries || kept.Len()+len(line) > keptLimit {
			return nil, fmt.Errorf("%w: more than %d series, or %d bytes, of metrics %s*", ErrTooLarge, maxSeries, keptLimit, keptMetrics)
		}
		kept.Write(line)
	}
	err := lines.Err()
	switch {
	case limited.N <= 0:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, scrapeLimit)
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, maxLine)
	}
	return &kept, err
}

// splitWhole splits into lines, each with its end. A text whose last line has none is cut short, perhaps within a number.
func splitWhole(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexByte(data, '\n') + 1
	switch {
	case end > 0:
		return end, data[:end], nil
	case atEOF && len(data) > 0:
		return 0, nil, errors.New("the text is cut short within a line")
	}
	return 0, nil, nil
}

// metricOf returns the name of the metric that a line of metrics is about; empty where it names none.
func metricOf(line []byte) string {
	if bytes.HasPrefix(line, []byte("#")) {
		fields := bytes.Fields(line[:min(len(line), maxName)])
		if len(fields) < 3 {
			return ""
		}
		return string(fields[2])
	}
	name, _, _ := strings.Cut(string(line[:min(len(line), maxName)]), "{")
	name, _, _ = strings.Cut(name, " ")
	name, _, _ = strings.Cut(name, "\t")
	return name
}

func isKept(metric string) bool {
	return strings.HasPrefix(metric, keptMetrics) || metric == familyProcess
}
