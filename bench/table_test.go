package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var rates = Workload{Name: "rates", Title: "Rates", Primary: "grants/s", Columns: []Column{{"grants/s", 0}, {overlapsMetric, 0}}}

func rate(peer string, repetition int, grants float64) sample {
	return sample{Workload: rates.Name, Peer: peer, Repetition: repetition, result: result{Metrics: Metrics{"grants/s": grants}}}
}

func failure(peer string, repetition int, why string) sample {
	return sample{Workload: rates.Name, Peer: peer, Repetition: repetition, result: result{Error: why}}
}

// The speed of the machine differs between the repetitions. The ratio of the medians would be
// 300/200; within each repetition it is 1/2, 1/2 and 3.
func TestRatioIsWithinARepetition(t *testing.T) {
	t.Parallel()
	samples := []sample{
		rate("floor", 0, 1000), rate("floor", 1, 200), rate("floor", 2, 100),
		rate("mine", 0, 500), rate("mine", 1, 100), rate("mine", 2, 300),
	}
	made := tabulate(samples, rates, 0, []string{"floor", "mine"})
	require.Len(t, made.rows, 2)
	assert.InDelta(t, 1, made.rows[0].ratio, 0)
	assert.InDelta(t, 300, made.rows[1].medians["grants/s"], 0)
	assert.InDelta(t, .5, made.rows[1].ratio, 0)
	assert.InDelta(t, 100, made.rows[1].low, 0)
	assert.InDelta(t, 500, made.rows[1].high, 0)
}

func TestRatioNeedsTheFloorOfItsRepetition(t *testing.T) {
	t.Parallel()
	samples := []sample{failure("floor", 0, "killed"), rate("floor", 1, 100), rate("mine", 0, 900), rate("mine", 1, 50)}
	assert.InDelta(t, .5, tabulate(samples, rates, 0, []string{"mine"}).rows[0].ratio, 0)
	samples = []sample{rate("mine", 0, 900)}
	assert.Zero(t, tabulate(samples, rates, 0, []string{"mine"}).rows[0].ratio)
}

func TestTable(t *testing.T) {
	t.Parallel()
	samples := []sample{
		rate("floor", 0, 1000), rate("floor", 1, 1000),
		rate("half", 0, 500), failure("half", 1, "timeout"),
		failure("none", 0, "a|b\nc"), failure("none", 1, "a|b\nc"),
	}
	assert.Equal(t, `| peer | grants/s | x floor | overlaps |
|---|--:|--:|--:|
| floor | 1000 | 1.00 | 0 |
| half | 500 (1 of 2 failed: timeout) | 0.50 | 0 |
| none | failed: a/b c | – | – |
`, tabulate(samples, rates, 0, []string{"floor", "half", "none", "absent"}).markdown())
}

func TestLinksHaveTablesOfTheirOwn(t *testing.T) {
	t.Parallel()
	slow := rate("floor", 0, 10)
	slow.Link = 2 * time.Millisecond
	samples := []sample{rate("floor", 0, 1000), slow}
	made := tabulate(samples, rates, slow.Link, []string{"floor"})
	assert.InDelta(t, 10, made.rows[0].medians["grants/s"], 0)
	assert.Equal(t, "rates-2ms", made.name())
}

// One overlap in one repetition must show, even if other repetitions have none or the peer failed.
func TestOverlapsAreAdded(t *testing.T) {
	t.Parallel()
	bad := failure("mine", 2, "lost")
	bad.Metrics = Metrics{overlapsMetric: 2}
	samples := []sample{rate("mine", 0, 1), rate("mine", 1, 1), bad}
	assert.InDelta(t, 2, tabulate(samples, rates, 0, []string{"mine"}).rows[0].medians[overlapsMetric], 0)
	b := bench{samples: samples}
	assert.True(t, b.overlapped())
	b.samples = samples[:2]
	assert.False(t, b.overlapped())
}

func TestPlot(t *testing.T) {
	t.Parallel()
	samples := []sample{rate("floor", 0, 1000), rate("mine", 0, 500), failure("none", 0, "why")}
	svg, err := tabulate(samples, rates, 0, []string{"floor", "mine", "none"}).draw().svg()
	require.NoError(t, err)
	assert.Contains(t, string(svg), "<svg")
	assert.Contains(t, string(svg), ">mine<")
	assert.Contains(t, string(svg), ">none<")
	assert.Contains(t, string(svg), ">failed<", "a peer that fails does not disappear")

	none := tabulate([]sample{failure("none", 0, "why")}, rates, 0, []string{"none"})
	_, err = none.draw().svg()
	require.NoError(t, err)
	zero := tabulate([]sample{rate("floor", 0, 0)}, rates, 0, []string{"floor"})
	_, err = zero.draw().svg()
	require.NoError(t, err)
}
