package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	linesHeight  = 200
	legendHeight = 24
	legendLine   = 32 // the line before a name
	dotRadius    = 3.5
)

// A lineChart draws a line for each operation of a growth.
type lineChart struct {
	growthChart
	drawn                     *plot
	sizes, times              scale
	left, length, top, bottom float64
}

func (g growthChart) draw() *plot {
	c := lineChart{growthChart: g, top: headHeight + legendHeight}
	c.bottom = c.top + linesHeight
	c.drawn = newPlot(c.bottom+tickHeight+noteHeight, g.title(), "µs of the server (less is better)")
	c.scale()
	c.addAxes()
	legend := float64(margin)
	for i, operation := range g.growth.Operations {
		if class := "series" + strconv.Itoa(i); c.add(class, operation) {
			legend = c.addLegend(class, operation, legend)
		}
	}
	return c.drawn
}

// scale makes room for the labels of the axes, so it begins with the times.
func (c *lineChart) scale() {
	for _, p := range c.points {
		for _, took := range p.times {
			c.times.high = max(c.times.high, took)
		}
	}
	if step := c.times.step(); step > 0 {
		c.times.high = step * math.Ceil(c.times.high/step)
	}
	for _, tick := range c.times.ticks() {
		c.left = max(c.left, margin+textWidth(tickLabel(tick))+gap)
	}
	last := slices.Max(growthSizes)
	c.sizes = scale{low: float64(growthSizes[0]), high: float64(last)}
	c.length = plotWidth - margin - textWidth(strconv.Itoa(last))/2 - c.left
}

func (c *lineChart) x(size int) float64     { return c.left + c.length*c.sizes.at(float64(size)) }
func (c *lineChart) y(took float64) float64 { return c.bottom - linesHeight*c.times.at(took) }

func (c *lineChart) addAxes() {
	for i, tick := range c.times.ticks() {
		c.drawn.gridLine(axis(i), c.left, c.y(tick), c.left+c.length, c.y(tick))
		c.drawn.write("tick", "end", c.left-gap, c.y(tick)+4, tickLabel(tick))
	}
	for _, size := range growthSizes {
		c.drawn.write("tick", "middle", c.x(size), c.bottom+16, strconv.Itoa(size))
	}
	text := c.growth.Beside + ", logarithmic scale"
	c.drawn.write("", "middle", c.left+c.length/2, c.drawn.Height-margin, text)
}

// add draws the line of an operation, and reports whether there is one.
func (c *lineChart) add(class, operation string) bool {
	var steps []string
	for _, p := range c.points {
		if took, ok := p.times[operation]; ok {
			x, y := c.x(p.size), c.y(took)
			steps = append(steps, position(x, y))
			c.drawn.dot(class, x, y)
		}
	}
	if len(steps) > 0 {
		c.drawn.stroke(class, "M%s", strings.Join(steps, "L"))
	}
	return len(steps) > 0
}

// addLegend names the line of an operation. It returns where the next name begins.
func (c *lineChart) addLegend(class, operation string, x float64) float64 {
	const y = headHeight + legendHeight/2 - 4
	end := x + legendLine
	c.drawn.stroke(class, "M%sH%.1f", position(x, y), end)
	c.drawn.dot(class, x+legendLine/2, y)
	c.drawn.write("", "start", end+gap, y+4, operation)
	return end + gap + textWidth(operation) + 2*gap
}
