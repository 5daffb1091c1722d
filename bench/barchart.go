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
	table        // only rows that are drawn
	drawn        *plot
	values       scale
	left, length float64 // where the bars begin, and how long the scale is
}

func (t table) draw() *plot {
	c := barChart{table: t}
	c.rows = slices.DeleteFunc(slices.Clone(t.rows), row.hidden)
	c.values = newScale(c.extremes())
	bottom := float64(headHeight + rowHeight*len(c.rows))
	height := bottom + tickHeight
	if c.repeated() {
		height += noteHeight
	}
	c.drawn = newPlot(height, t.workload.Title, c.caption())
	c.arrange()
	for i, tick := range c.values.ticks() {
		c.drawn.gridLine(axis(i), c.x(tick), headHeight, c.x(tick), bottom)
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

// axis returns the class of the line of a tick.
func axis(tick int) string {
	if tick == 0 {
		return "axis"
	}
	return ""
}

// hidden reports whether a row is not drawn: it is a variant of another peer, in a plot that has
// several bars for each peer.
func (r row) hidden() bool { return r.size > 0 && strings.Contains(r.peer, "-") }

// title returns the text before the bar.
func (r row) title() string {
	if r.size == 0 {
		return r.peer
	}
	return fmt.Sprintf("%s, %d clients", r.peer, r.size)
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
	if c.workload.Beside != "" {
		text += " and " + c.workload.Beside
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
		c.left = max(c.left, margin+textWidth(r.title())+gap)
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

// label returns the values of a peer as the table shows them.
func (c *barChart) label(r row) string {
	if r.failed == r.samples {
		return "failed"
	}
	text := r.figure(c.workload.column(c.workload.Primary))
	if c.workload.Beside != "" {
		text += fmt.Sprintf(", %s %s", c.workload.Beside, r.figure(c.workload.column(c.workload.Beside)))
	}
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
	c.drawn.write(class, "end", c.left-gap, y+4, r.title())
	if r.failed < r.samples {
		c.drawn.bar(class, c.left, y-barHeight/2, c.x(r.medians[c.workload.Primary])-c.left, barHeight)
	}
	if r.low < r.high {
		c.drawn.stroke("range", "M%.1f %.1fv8M%.1f %.1fv8M%.1f %.1fH%.1f", low, y-4, high, y-4, low, y, high)
	}
	c.drawn.write("value", "start", high+gap, y+4, c.label(r))
}
