package main

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
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
		return "–"
	case value < 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}

const (
	growthWidth  = 14 * vg.Centimeter
	growthHeight = 7 * vg.Centimeter
)

var lineColors = []color.Color{
	barColor,
	color.RGBA{R: 0xf5, G: 0x85, B: 0x18, A: 0xff},
	color.RGBA{R: 0x54, G: 0xa2, B: 0x4b, A: 0xff},
}

// plot draws a line for each operation.
func (g growthChart) plot(w io.Writer) error {
	p := plot.New()
	p.Title.Text = g.title()
	p.Title.TextStyle.Font.Size = vg.Points(10)
	p.X.Label.Text = g.growth.Beside
	p.Y.Label.Text = "µs of the server (less is better)"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, g.ticks()
	p.Legend.Top, p.Legend.Left = true, true
	for i, operation := range g.growth.Operations {
		if err := g.addLine(p, operation, lineColors[i]); err != nil {
			return err
		}
	}
	p.X.Min, p.X.Max = float64(growthSizes[0]), float64(slices.Max(growthSizes))
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.5, 1) // for the legend
	canvas := vgsvg.New(growthWidth, growthHeight)
	p.Draw(draw.Crop(draw.New(canvas), plotBorder, -3*plotBorder, plotBorder, -plotBorder))
	_, err := canvas.WriteTo(w)
	return err
}

func (growthChart) ticks() plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, size := range growthSizes {
		ticks = append(ticks, plot.Tick{Value: float64(size), Label: strconv.Itoa(size)})
	}
	return ticks
}

func (g growthChart) addLine(p *plot.Plot, operation string, c color.Color) error {
	var points plotter.XYs
	for _, at := range g.points {
		if value, ok := at.times[operation]; ok {
			points = append(points, plotter.XY{X: float64(at.size), Y: value})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, dots.Color = c, c
	line.Width, dots.Shape = vg.Points(1.5), draw.CircleGlyph{}
	p.Add(line, dots)
	p.Legend.Add(operation, line, dots)
	return nil
}
