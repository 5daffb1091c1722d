package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	values := []float64{9, 1, 5}
	assert.InDelta(t, 5, median(values), 0)
	assert.Equal(t, []float64{9, 1, 5}, values, "the values keep their order")
	assert.InDelta(t, 3, median([]float64{5, 1}), 0)
	assert.InDelta(t, 7, median([]float64{7}), 0)
	assert.Zero(t, median(nil))
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for i := range 100 {
		times = append(times, time.Duration(i))
	}
	assert.Equal(t, time.Duration(50), quantile(times, .5))
	assert.Equal(t, time.Duration(99), quantile(times, .99))
	assert.Equal(t, time.Duration(99), quantile(times, 1))
	assert.Zero(t, quantile(nil, .5))
}
