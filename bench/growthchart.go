package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A growthChart has the results of a growth.
type growthChart struct {
	growth Growth
	points []point // by size
}

// A point has the shortest time of each operation at one size. The shortest time counts, because
// other load on the machine can only lengthen a time.
type point struct {
	size   int
	times  Metrics
	failed string // the last error, shown if no repetition succeeded
}

func newGrowthChart(g Growth, samples []sample) growthChart {
	c := growthChart{growth: g}
	for _, size := range growthSizes {
		p := point{size: size, times: Metrics{}}
		for _, s := range samples {
			if s.Workload == g.Name && s.Size == size {
				p.add(s)
			}
		}
		c.points = append(c.points, p)
	}
	return c
}

func (p *point) add(s sample) {
	if s.Error != "" {
		p.failed = s.Error
	}
	for operation, took := range s.Metrics {
		if least, ok := p.times[operation]; !ok || took < least {
			p.times[operation] = took
		}
	}
}

func (g growthChart) name() string  { return g.growth.Name }
func (g growthChart) title() string { return g.growth.Title }

// markdown returns a line for each size, and a column for each operation.
func (g growthChart) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |", g.growth.Beside)
	for _, operation := range g.growth.Operations {
		fmt.Fprintf(&b, " %s, µs |", operation)
	}
	fmt.Fprintf(&b, "\n|--:|%s\n", strings.Repeat("--:|", len(g.growth.Operations)))
	for _, p := range g.points {
		fmt.Fprintf(&b, "| %d |", p.size)
		for _, operation := range g.growth.Operations {
			fmt.Fprintf(&b, " %s |", p.cell(operation))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cell returns a time, with one decimal if it is short.
func (p point) cell(operation string) string {
	value, ok := p.times[operation]
	switch {
	case !ok && p.failed != "":
		return "failed: " + brief(p.failed)
	case !ok:
		return absent
	case value < 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}
