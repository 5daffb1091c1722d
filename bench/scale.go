package main

import (
	"math"
	"strconv"
)

// A scale maps values to the interval from 0 to 1. It is linear and begins at 0, or logarithmic and
// begins at a power of ten.
type scale struct {
	low, high float64 // low is 0 if the scale is linear
}

// logarithmicFrom is how many times as large as the smallest value the largest is on a logarithmic
// scale.
const logarithmicFrom = 50

// newScale returns a scale for the values. A logarithmic one begins at half of the smallest value
// or below, so that this value can be told from 0.
func newScale(values []float64) scale {
	s, least := scale{}, math.Inf(1)
	for _, v := range values {
		s.high = max(s.high, v)
		if v > 0 {
			least = min(least, v)
		}
	}
	if s.high < logarithmicFrom*least {
		return s
	}
	for s.low = 1; s.low < least; {
		s.low *= 10
	}
	for 2*s.low > least {
		s.low /= 10
	}
	return s
}

func (s scale) logarithmic() bool { return s.low > 0 }

func (s scale) at(value float64) float64 {
	switch {
	case value <= s.low:
		return 0
	case s.logarithmic():
		return math.Log(value/s.low) / math.Log(s.high/s.low)
	}
	return value / s.high
}

// ticks returns the powers of ten of a logarithmic scale, or up to six round values of a linear
// one.
func (s scale) ticks() []float64 {
	var ticks []float64
	if s.logarithmic() {
		for t := s.low; t <= s.high; t *= 10 {
			ticks = append(ticks, t)
		}
		return ticks
	}
	step := s.step()
	for i := 0.; i*step <= s.high && step > 0; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// step returns the least of 1, 2, 5, 10, 20, 50 and so on, and of their fractions, with which at
// most five steps lead to the highest value.
func (s scale) step() float64 {
	if s.high == 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(s.high))-1)
	for _, factor := range []float64{1, 2, 5, 10} {
		if s.high/(factor*power) <= 5 {
			return factor * power
		}
	}
	return 20 * power
}

func tickLabel(value float64) string { return strconv.FormatFloat(value, 'g', 9, 64) }
