package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A box is a rectangle that is drawn.
type box struct {
	what                     string
	left, top, right, bottom float64
}

func (b box) overlaps(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

// boxOf returns the place that a text takes in a wide font, such as Verdana Bold.
func boxOf(t text) box {
	size := 12.
	if t.Class == "title" {
		size = 14
	}
	width := .72 * size * float64(utf8.RuneCountInString(t.Text))
	left := t.X - map[string]float64{"start": 0, "middle": width / 2, "end": width}[t.Anchor]
	return box{t.Text, left, t.Y - .8*size, left + width, t.Y + .3*size}
}

// level matches a path that ends with a level line: the range of a bar, or a line of a legend.
var level = regexp.MustCompile(`([\d.]+) ([\d.]+)H([\d.]+)$`)

// marks returns what no text may cover.
func marks(t *testing.T, p *plot) []box {
	t.Helper()
	var all []box
	for _, b := range p.Bars {
		all = append(all, box{"a bar", b.X, b.Y, b.X + b.Width, b.Y + b.Height})
	}
	for _, d := range p.Dots {
		all = append(all, box{"a dot", d.X - d.R, d.Y - d.R, d.X + d.R, d.Y + d.R})
	}
	for _, s := range p.Strokes {
		if ends := level.FindStringSubmatch(s.D); ends != nil {
			var n [3]float64
			for i := range n {
				var err error
				n[i], err = strconv.ParseFloat(ends[i+1], 64)
				require.NoError(t, err)
			}
			all = append(all, box{"a line", n[0], n[1] - 4, n[2], n[1] + 4})
		}
	}
	return all
}

func assertRoom(t *testing.T, name string, p *plot) {
	t.Helper()
	taken := marks(t, p)
	for _, text := range p.Texts {
		b := boxOf(text)
		inside := b.left >= 0 && b.top >= 0 && b.right <= p.Width && b.bottom <= p.Height
		assert.True(t, inside, "%s: %q lies outside: %v", name, text.Text, b)
		for _, other := range taken {
			assert.False(t, b.overlaps(other), "%s: %q overlaps %q: %v, %v", name, text.Text, other.what, b, other)
		}
		taken = append(taken, b)
	}
	assert.Equal(t, "0 0 "+tickLabel(p.Width)+" "+tickLabel(p.Height), p.ViewBox)
}

// results returns samples of all peers. One peer is a thousand times as fast as the slowest, one
// fails once, and one always.
func results(w Workload, link time.Duration) []sample {
	var samples []sample
	for _, size := range (&settings{}).sizes(w) {
		for i, p := range peers() {
			for repetition := range 3 {
				value := float64((i+1)*(1000+500*repetition)) * map[bool]float64{true: 100, false: .1}[i == 2]
				s := sample{Workload: w.Name, Link: link, Peer: p.Name(), Repetition: repetition, Size: size}
				s.Metrics = Metrics{w.Primary: value, w.Beside: .5}
				if i == 8 || i == 3 && repetition == 1 {
					s.result = result{Error: "why"}
				}
				samples = append(samples, s)
			}
		}
	}
	return samples
}

func namesOfPeers() []string {
	var names []string
	for _, p := range peers() {
		names = append(names, p.Name())
	}
	return names
}

func TestTextsHaveRoom(t *testing.T) {
	t.Parallel()
	for _, w := range workloads() {
		for _, link := range []time.Duration{0, 2500 * time.Microsecond} {
			assertRoom(t, w.Name, tabulate(results(w, link), w, link, namesOfPeers()).draw())
		}
	}
	for _, g := range growths() {
		c := growthChart{growth: g}
		for i, size := range growthSizes {
			p := point{size: size, times: Metrics{}}
			for j, operation := range g.Operations {
				p.times[operation] = float64(1 + 9999*i*j)
			}
			c.points = append(c.points, p)
		}
		assertRoom(t, g.Name, c.draw())
	}
}

func TestTextsOfThePageHaveRoom(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../docs/performance/*.svg")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".svg")
		assertRoom(t, name, readPlot(t, name))
	}
}

// colored matches a rule of a style that sets a colour.
var colored = regexp.MustCompile(`(\S.*) {.*(fill|stroke): (#\S+)`)

func TestEachColorHasOneForDarkPages(t *testing.T) {
	t.Parallel()
	light, dark, found := strings.Cut(styleSheet, "@media (prefers-color-scheme: dark) {")
	require.True(t, found)
	rules := colored.FindAllStringSubmatch(light, -1)
	require.NotEmpty(t, rules)
	for _, rule := range rules {
		assert.Contains(t, dark, "\t"+rule[1]+" { "+rule[2]+": #")
		assert.NotContains(t, dark, rule[3])
	}
}

func TestBarsOfLatchkeyAreMarked(t *testing.T) {
	t.Parallel()
	w := workloads()[0]
	p := tabulate(results(w, 0), w, 0, namesOfPeers()).draw()
	var marked []string
	for _, text := range p.Texts {
		if text.Class == "ours" {
			marked = append(marked, text.Text)
		}
	}
	assert.Equal(t, []string{"latchkey", "latchkey-mutex", "latchkey-noturn"}, marked)
	classes := []string{}
	for _, b := range p.Bars {
		classes = append(classes, b.Class)
	}
	assert.Equal(t, []string{"", "ours", "ours", "ours", "", "", "", "", "", ""}, classes)
}

// drawRates returns the plot of peers with these values, and the lengths of its bars.
func drawRates(values ...float64) (p *plot, lengths []float64) {
	var samples []sample
	for i, v := range values {
		samples = append(samples, rate(peers()[i].Name(), 0, v))
	}
	p = tabulate(samples, rates, 0, namesOfPeers()).draw()
	for _, b := range p.Bars {
		lengths = append(lengths, b.Width)
	}
	return p, lengths
}

func saysLogarithmic(p *plot) bool {
	return slices.ContainsFunc(p.Texts, func(t text) bool { return strings.Contains(t.Text, "logarithmic scale") })
}

func TestScaleOfBars(t *testing.T) {
	t.Parallel()
	p, long := drawRates(400, 200, 0)
	assert.False(t, saysLogarithmic(p))
	assert.InDelta(t, 2, long[0]/long[1], .01)
	assert.Zero(t, long[2])

	p, long = drawRates(10_000, 1000, 100, 0)
	assert.True(t, saysLogarithmic(p))
	assert.InDelta(t, long[0]-long[1], long[1]-long[2], .2, "each factor of ten has the same length")
	assert.Positive(t, long[2])
	assert.Zero(t, long[3])
}

func TestTicks(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []float64{0, 5000, 10_000}, newScale([]float64{12_330}).ticks())
	assert.Equal(t, []float64{0, 2, 4, 6, 8, 10}, newScale([]float64{10}).ticks())
	assert.Equal(t, []float64{.1, 1, 10}, newScale([]float64{.5, 0, 70}).ticks())
	assert.Equal(t, []float64{1, 10, 100, 1000}, newScale([]float64{15, 1500}).ticks(), "15 can be told from 0")
	assert.Empty(t, newScale([]float64{0}).ticks())
}
