package main

import (
	_ "embed" // for the style
	"encoding/xml"
	"fmt"
	"math"
	"unicode/utf8"
)

// A plot is a drawing in SVG, without fonts of its own. It has a background, because the page
// around it may be dark where the viewer of the plot is light, or the other way around. Later
// fields are drawn over earlier ones.
type plot struct {
	XMLName xml.Name   `xml:"http://www.w3.org/2000/svg svg"`
	Width   float64    `xml:"width,attr"`
	Height  float64    `xml:"height,attr"`
	ViewBox string     `xml:"viewBox,attr"`
	Style   style      `xml:"style"`
	Back    backdrop   `xml:"polygon"`
	Grid    []gridLine `xml:"line"`
	Bars    []bar      `xml:"rect"`
	Strokes []stroke   `xml:"path"`
	Dots    []dot      `xml:"circle"`
	Texts   []text     `xml:"text"`
}

// A style is in CSS, and is written as it is.
type style struct {
	Rules string `xml:",innerxml"`
}

// A backdrop covers the whole plot. It is not a rect, because bars are.
type backdrop struct {
	Points string `xml:"points,attr"`
}

// A gridLine is a line of the grid, or the axis from which bars begin.
type gridLine struct {
	Class string  `xml:"class,attr,omitempty"`
	X1    float64 `xml:"x1,attr"`
	Y1    float64 `xml:"y1,attr"`
	X2    float64 `xml:"x2,attr"`
	Y2    float64 `xml:"y2,attr"`
}

type bar struct {
	Class  string  `xml:"class,attr,omitempty"`
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	Width  float64 `xml:"width,attr"`
	Height float64 `xml:"height,attr"`
}

// A stroke is a path that is drawn with a pen.
type stroke struct {
	Class string `xml:"class,attr"`
	D     string `xml:"d,attr"`
}

type dot struct {
	Class string  `xml:"class,attr"`
	X     float64 `xml:"cx,attr"`
	Y     float64 `xml:"cy,attr"`
	R     float64 `xml:"r,attr"`
}

// A text has its baseline at Y. Its anchor, "start", "middle" or "end", is at X.
type text struct {
	Class  string  `xml:"class,attr,omitempty"`
	Anchor string  `xml:"text-anchor,attr"`
	X      float64 `xml:"x,attr"`
	Y      float64 `xml:"y,attr"`
	Text   string  `xml:",chardata"`
}

// styleSheet has the colors of light and of dark pages. Its font size is fontSize.
//
//go:embed plot.css
var styleSheet string

const (
	fontSize   = 12
	plotWidth  = 800
	margin     = 8  // around the plot
	gap        = 8  // between a text and what it belongs to
	headHeight = 56 // for the title and the caption
	tickHeight = 22 // for the labels below an axis
	noteHeight = 20 // for a line of text below the plot
)

// newPlot returns a plot with a title, and below it a caption that says what the figures are.
func newPlot(height float64, title, caption string) *plot {
	p := &plot{
		Width: plotWidth, Height: height, ViewBox: fmt.Sprintf("0 0 %d %g", plotWidth, height), Style: style{"\n" + styleSheet},
		Back: backdrop{fmt.Sprintf("0,0 %[1]d,0 %[1]d,%[2]g 0,%[2]g", plotWidth, height)},
	}
	p.write("title", "start", margin, 22, title)
	p.write("", "start", margin, 42, caption)
	return p
}

func (p *plot) write(class, anchor string, x, y float64, what string) {
	p.Texts = append(p.Texts, text{class, anchor, tenth(x), tenth(y), what})
}

func (p *plot) gridLine(class string, x1, y1, x2, y2 float64) {
	p.Grid = append(p.Grid, gridLine{class, tenth(x1), tenth(y1), tenth(x2), tenth(y2)})
}

func (p *plot) bar(class string, x, y, width, height float64) {
	p.Bars = append(p.Bars, bar{class, tenth(x), tenth(y), tenth(width), tenth(height)})
}

func (p *plot) dot(class string, x, y float64) {
	p.Dots = append(p.Dots, dot{class, tenth(x), tenth(y), dotRadius})
}

func (p *plot) stroke(class, format string, args ...any) {
	p.Strokes = append(p.Strokes, stroke{class, fmt.Sprintf(format, args...)})
}

// textWidth returns the width that a text needs in a wide font, such as Verdana Bold.
func textWidth(text string) float64 {
	return .72 * fontSize * float64(utf8.RuneCountInString(text))
}

// position returns a point of a path.
func position(x, y float64) string { return fmt.Sprintf("%.1f %.1f", x, y) }

func tenth(x float64) float64 { return math.Round(10*x) / 10 }

func (p *plot) svg() ([]byte, error) {
	text, err := xml.MarshalIndent(p, "", "\t")
	return append(text, '\n'), err
}
