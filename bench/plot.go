package main

import (
	"fmt"
	"image/color"
	"io"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth  = 16 * vg.Centimeter
	barWidth   = 12 * vg.Millimeter / 2
	plotHead   = 28 * vg.Millimeter // for the title and the axis
	plotBorder = 3 * vg.Millimeter
)

var barColor = color.RGBA{R: 0x4c, G: 0x78, B: 0xa8, A: 0xff}

// name returns the name of the workload, and the link.
func (t table) name() string {
	if t.link == 0 {
		return t.workload.Name
	}
	return t.workload.Name + "-" + t.link.String()
}

// title says what is measured, over which link.
func (t table) title() string {
	if t.link == 0 {
		return t.workload.Title
	}
	return fmt.Sprintf("%s; link of %v", t.workload.Title, t.link)
}

// plot draws the primary metric of each peer as a bar, with a line from the smallest to the largest
// value of its repetitions.
func (t table) plot(w io.Writer) error {
	rows := slices.DeleteFunc(slices.Clone(t.rows), func(r row) bool { return r.failed == r.samples })
	slices.Reverse(rows) // the axis goes upwards
	p := plot.New()
	p.Title.Text = t.title()
	p.Title.TextStyle.Font.Size = vg.Points(10)
	p.Title.Padding = plotBorder
	p.X.Label.Text = t.axis()
	p.X.Min = 0
	if err := t.addBars(p, rows); err != nil {
		return err
	}
	canvas := vgsvg.New(plotWidth, plotHead+vg.Length(len(rows))*3/2*barWidth)
	p.Draw(draw.Crop(draw.New(canvas), plotBorder, -plotBorder, plotBorder, -plotBorder))
	_, err := canvas.WriteTo(w)
	return err
}

func (t table) axis() string {
	if t.workload.Less {
		return t.workload.Primary + " (less is better)"
	}
	return t.workload.Primary + " (more is better)"
}

func (t table) addBars(p *plot.Plot, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	var names []string
	var values plotter.Values
	spread := &spans{}
	for i, r := range rows {
		value := r.medians[t.workload.Primary]
		names, values = append(names, r.peer), append(values, value)
		spread.XYs = append(spread.XYs, plotter.XY{X: value, Y: float64(i)})
		spread.XErrors = append(spread.XErrors, struct{ Low, High float64 }{value - r.low, r.high - value})
	}
	bars, err := plotter.NewBarChart(values, barWidth)
	if err != nil {
		return err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, barColor, 0
	lines, err := plotter.NewXErrorBars(spread)
	if err != nil {
		return err
	}
	labels, err := plotter.NewLabels(labeled(spread.XYs, rows))
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{X: vg.Points(4)}
	for i := range labels.TextStyle {
		labels.TextStyle[i].YAlign = draw.YCenter
	}
	p.Add(bars, lines, labels)
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -.6, float64(len(rows))-.4
	p.X.Max = max(p.X.Max*1.15, 1) // for the labels
	return nil
}

// labeled puts the value of each bar at the end of its line.
func labeled(points plotter.XYs, rows []row) plotter.XYLabels {
	labels := plotter.XYLabels{}
	for i, point := range points {
		labels.XYs = append(labels.XYs, plotter.XY{X: rows[i].high, Y: point.Y})
		labels.Labels = append(labels.Labels, strconv.FormatFloat(point.X, 'f', 0, 64))
	}
	return labels
}

// spans are points with their ranges.
type spans struct {
	plotter.XYs
	plotter.XErrors
}
