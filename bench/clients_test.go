package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFairnessIsJainsIndex(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, 1, fairness([]float64{3, 3, 3, 3}), 1e-9)
	assert.InDelta(t, .25, fairness([]float64{0, 8, 0, 0}), 1e-9)
	assert.InDelta(t, .9, fairness([]float64{1, 2}), 1e-9)
	assert.Zero(t, fairness([]float64{0, 0}))
}

// grown are samples of a workload with sizes: two peers, one of them in two configurations.
func grown() (Workload, []sample) {
	w := manyClients("grown", "Grown", exclusive{})
	var samples []sample
	for i, peer := range []string{"floor", "redsync", "redsync-5ms"} {
		for _, size := range []int{8, 400} {
			grants := float64(1000 * size >> i)
			samples = append(samples, sample{
				Workload: w.Name, Peer: peer, Size: size,
				result: result{Metrics: Metrics{w.Primary: grants, fairnessMetric: .5}},
			})
		}
	}
	return w, samples
}

func TestTableOfSizes(t *testing.T) {
	t.Parallel()
	w, samples := grown()
	w.Columns = w.Columns[:2]
	assert.Equal(t, `| peer | clients | grants/s | x floor | fairness |
|---|--:|--:|--:|--:|
| floor | 8 | 8000 | 1.00 | 0.50 |
| floor | 400 | 400000 | 1.00 | 0.50 |
| redsync | 8 | 4000 | 0.50 | 0.50 |
| redsync | 400 | 200000 | 0.50 | 0.50 |
`, tabulate(samples, w, 0, []string{"floor", "redsync"}).markdown())
}

func TestPlotOfSizesHasTheDefaultsOfEachPeer(t *testing.T) {
	t.Parallel()
	w, samples := grown()
	var names, values []string
	p := tabulate(samples, w, 0, namesOfPeers()).draw()
	for i, text := range p.Texts {
		if text.Anchor == "end" {
			names, values = append(names, text.Text), append(values, p.Texts[i+1].Text)
		}
	}
	assert.Equal(t, []string{"floor, 8 clients", "floor, 400 clients", "redsync, 8 clients", "redsync, 400 clients"}, names)
	assert.Equal(t, "8000, fairness 0.50", values[0])
	require.Len(t, p.Bars, 4)
}

func TestLittleTimeIsForFewClients(t *testing.T) {
	t.Parallel()
	w := manyClients("many", "Many", exclusive{})
	assert.Equal(t, clientCounts, (&settings{}).sizes(w))
	assert.Equal(t, []int{8, 100}, (&settings{quick: true}).sizes(w))
	assert.Equal(t, []int{0}, (&settings{quick: true}).sizes(workloads()[0]))
}
