package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	rowHeight = 24
	barHeight = 14
)

// A barChart draws the primary metric of each peer as a bar, with a line from the smallest to the
// largest value of its repetitions.
type barChart struct {
	table        // only rows with a result
	drawn        *plot
	values       scale
	left, length float64 // where the bars begin, and how long the scale is
}

func (t table) draw() *plot {
	c := barChart{table: t}
	c.rows = slices.DeleteFunc(slices.Clone(t.rows), func(r row) bool { return r.failed == r.samples })
	c.values = newScale(c.extremes())
	bottom := float64(headHeight + rowHeight*len(c.rows))
	height := bottom + tickHeight
	if c.repeated() {
		height += noteHeight
	}
	c.drawn = newPlot(height, t.workload.Title, c.caption())
	c.arrange()
	for _, tick := range c.values.ticks() {
		c.drawn.gridLine(c.x(tick), headHeight, c.x(tick), bottom)
		c.drawn.write("tick", "middle", c.x(tick), bottom+16, tickLabel(tick))
	}
	for i, r := range c.rows {
		c.add(r, float64(headHeight+rowHeight*i+rowHeight/2))
	}
	if c.repeated() {
		c.drawn.write("tick", "start", margin, height-margin, "Bar: median. Line: from the least to the greatest repetition.")
	}
	return c.drawn
}

// extremes returns the ends of all bars and lines.
func (c *barChart) extremes() []float64 {
	var values []float64
	for _, r := range c.rows {
		values = append(values, r.low, r.high)
	}
	return values
}

// repeated reports whether there is a line.
func (c *barChart) repeated() bool {
	return slices.ContainsFunc(c.rows, func(r row) bool { return r.low < r.high })
}

// caption says what the bars show.
func (c *barChart) caption() string {
	text := c.workload.Primary + " (more is better)"
	if c.workload.Less {
		text = c.workload.Primary + " (less is better)"
	}
	if c.values.logarithmic() {
		text += ", logarithmic scale"
	}
	if c.link != 0 {
		text += fmt.Sprintf(", link of %v", c.link)
	}
	return text
}

// arrange makes room for the names before the bars, and for the values after them.
func (c *barChart) arrange() {
	for _, r := range c.rows {
		c.left = max(c.left, margin+textWidth(r.peer)+gap)
	}
	c.length = plotWidth - margin - c.left
	for _, r := range c.rows {
		if at := c.values.at(r.high); at > 0 {
			room := plotWidth - margin - textWidth(c.label(r)) - gap - c.left
			c.length = min(c.length, room/at)
		}
	}
}

func (c *barChart) x(value float64) float64 { return c.left + c.length*c.values.at(value) }

// label returns the value of a peer as the table shows it.
func (c *barChart) label(r row) string {
	text := r.figure(c.workload.primary())
	if r.failed > 0 {
		text += fmt.Sprintf(" (%d of %d failed)", r.failed, r.samples)
	}
	return text
}

// add draws the row of a peer. Its middle is at y.
func (c *barChart) add(r row, y float64) {
	class := ""
	if strings.HasPrefix(r.peer, latchkeyLock().Name()) {
		class = "ours"
	}
	low, high := c.x(r.low), c.x(r.high)
	c.drawn.write(class, "end", c.left-gap, y+4, r.peer)
	c.drawn.bar(class, c.left, y-barHeight/2, c.x(r.medians[c.workload.Primary])-c.left, barHeight)
	if r.low < r.high {
		c.drawn.stroke("range", "M%.1f %.1fv8M%.1f %.1fv8M%.1f %.1fH%.1f", low, y-4, high, y-4, low, y, high)
	}
	c.drawn.write("", "start", high+gap, y+4, c.label(r))
}
