package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGrowthChartHasTheLeastOfEachSize(t *testing.T) {
	t.Parallel()
	g := Growth{Name: "g", Title: "Grows", Beside: "things", Operations: []string{"first", "second"}}
	at := func(size int, first float64) sample {
		return sample{Workload: g.Name, Size: size, result: result{Metrics: Metrics{"first": first}}}
	}
	failed := sample{Workload: g.Name, Size: 100, result: result{Error: "why"}}
	c := newGrowthChart(g, []sample{at(1, 20), at(1, 9.5), at(10, 30), failed})
	assert.Contains(t, c.markdown(), "| 1 | 9.5 | – |\n| 10 | 30 | – |\n| 100 | failed: why | failed: why |\n")
	svg, err := c.draw().svg()
	require.NoError(t, err)
	assert.Contains(t, string(svg), ">first<")
	assert.NotContains(t, string(svg), ">second<", "there is nothing to draw")
}
