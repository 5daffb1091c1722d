package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A row has the results of a peer in a workload over one link.
type row struct {
	peer    string
	size    int // 0 if the workload has no sizes
	medians Metrics
	low     float64 // the smallest and the largest value of the primary metric
	high    float64
	ratio   float64 // to the floor; 0 if there is no floor
	samples int
	failed  int
	why     string // the last failure
}

// A table is the rows of a workload over one link.
type table struct {
	workload Workload
	link     time.Duration
	rows     []row
}

// A round is one repetition with one size.
type round struct{ size, repetition int }

// tabulate returns the rows of a workload over a link, in the order of the peers and then of the
// sizes.
func tabulate(samples []sample, w Workload, link time.Duration, peers []string) table {
	t := table{workload: w, link: link}
	floors := map[round]float64{}
	for _, s := range samples {
		if s.Workload == w.Name && s.Link == link && s.Peer == (floor{}).Name() && s.Error == "" {
			floors[round{s.Size, s.Repetition}] = s.Metrics[w.Primary]
		}
	}
	sizes := w.Sizes
	if len(sizes) == 0 {
		sizes = []int{0}
	}
	for _, name := range peers {
		for _, size := range sizes {
			own := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
				return s.Workload != w.Name || s.Link != link || s.Peer != name || s.Size != size
			})
			if len(own) > 0 {
				t.rows = append(t.rows, newRow(own, w.Primary, floors))
			}
		}
	}
	return t
}

// newRow returns a row with the median of each metric, and the median of the ratios to the floor.
// Each ratio is taken within one round.
func newRow(samples []sample, primary string, floors map[round]float64) row {
	r := row{peer: samples[0].Peer, size: samples[0].Size, medians: Metrics{}, samples: len(samples)}
	values, ratios := map[string][]float64{}, []float64(nil)
	for _, s := range samples {
		// Overlaps are summed, so that neither a median nor an error hides them.
		r.medians[overlapsMetric] += s.Metrics[overlapsMetric]
		if s.Error != "" {
			r.failed, r.why = r.failed+1, s.Error
			continue
		}
		for metric, value := range s.Metrics {
			values[metric] = append(values[metric], value)
		}
		if least := floors[round{s.Size, s.Repetition}]; least > 0 {
			ratios = append(ratios, s.Metrics[primary]/least)
		}
	}
	for metric, all := range values {
		if metric != overlapsMetric {
			r.medians[metric] = median(all)
		}
	}
	if r.failed == r.samples && r.medians[overlapsMetric] == 0 {
		delete(r.medians, overlapsMetric) // nothing is known
	}
	r.low, r.high = bounds(values[primary])
	r.ratio = median(ratios)
	return r
}

func bounds(values []float64) (low, high float64) {
	for i, v := range values {
		if i == 0 {
			low, high = v, v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// name returns the name of the workload, and the link.
func (t table) name() string {
	if t.link == 0 {
		return t.workload.Name
	}
	return t.workload.Name + "-" + t.link.String()
}

// title says what is measured, over which link.
func (t table) title() string {
	if t.link == 0 {
		return t.workload.Title
	}
	return fmt.Sprintf("%s; link of %v", t.workload.Title, t.link)
}

// markdown returns the table as text.
func (t table) markdown() string {
	var b strings.Builder
	b.WriteString("| peer |")
	rule := "|---|"
	if len(t.workload.Sizes) > 0 {
		b.WriteString(" clients |")
		rule += "--:|"
	}
	for _, c := range t.workload.Columns {
		fmt.Fprintf(&b, " %s |", c.Metric)
		rule += "--:|"
		if c.Metric == t.workload.Primary {
			b.WriteString(" x floor |")
			rule += "--:|"
		}
	}
	fmt.Fprintf(&b, "\n%s\n", rule)
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s |", r.peer)
		if r.size > 0 {
			fmt.Fprintf(&b, " %d |", r.size)
		}
		for _, c := range t.workload.Columns {
			b.WriteString(t.cells(r, c))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cells returns the cell of a column. For the primary column it adds the cell of the ratio.
func (t table) cells(r row, c Column) string {
	primary := c.Metric == t.workload.Primary
	text := r.figure(c)
	if primary && r.failed > 0 {
		text = r.failure(text)
	}
	if !primary {
		return " " + text + " |"
	}
	ratio := absent
	if r.ratio > 0 {
		ratio = strconv.FormatFloat(r.ratio, 'f', 2, 64)
	}
	return " " + text + " | " + ratio + " |"
}

// figure returns the value of a column.
func (r row) figure(c Column) string {
	if value, ok := r.medians[c.Metric]; ok {
		return strconv.FormatFloat(value, 'f', c.Digits, 64)
	}
	return absent
}

// absent is the cell of a figure that does not exist.
const absent = "–"

// whyLimit is how many characters of an error go into a cell.
const whyLimit = 160

func (r row) failure(text string) string {
	if r.failed == r.samples {
		return "failed: " + brief(r.why)
	}
	return fmt.Sprintf("%s (%d of %d failed: %s)", text, r.failed, r.samples, brief(r.why))
}

// brief makes an error fit into a cell.
func brief(why string) string {
	text := []rune(strings.NewReplacer("\n", " ", "|", "/").Replace(why))
	if len(text) > whyLimit {
		text = append(text[:whyLimit], '…')
	}
	return string(text)
}
