package main

import (
	"encoding/xml"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPageIsFilled(t *testing.T) {
	t.Parallel()
	page := "a\n<!-- bench one -->\nold\n<!-- end -->\nb\n<!-- bench two -->\nkept\n<!-- end -->\n"
	filled := fillPage(page, map[string]string{"one": "new\n", "three": "unused"})
	assert.Equal(t, "a\n<!-- bench one -->\nnew\n<!-- end -->\nb\n<!-- bench two -->\nkept\n<!-- end -->\n", filled)
	text, found := sectionOf(filled, "one")
	assert.True(t, found)
	assert.Equal(t, "new\n", text)
	_, found = sectionOf(filled, "three")
	assert.False(t, found)
}

// The table of costs in the page is up to date. The test runs alone, because it counts allocations.
func TestCostsOfThePage(t *testing.T) {
	needServer(t)
	page, err := os.ReadFile("../docs/performance.md")
	require.NoError(t, err)
	said, found := sectionOf(string(page), costsName)
	require.True(t, found)
	server, err := startServer(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, server.stop()) }()
	lines, err := countCosts(t.Context(), server.addr)
	require.NoError(t, err)
	counted := costTable(lines)
	const remedy = "run: go run . -only costs -docs ../docs/performance"
	require.Equal(t, withoutLast(counted), withoutLast(said), remedy)
	if raceDetector {
		return // the race detector adds allocations
	}
	for i, want := range lastOf(counted) {
		got := lastOf(said)[i]
		assert.InDelta(t, want, got, 2+want/4, "allocations in line %d: %s", i+1, remedy)
	}
}

// The plots of the page show the figures of its tables.
func TestPlotsOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/performance.md")
	require.NoError(t, err)
	for _, w := range workloads() {
		for _, link := range []time.Duration{0, 2 * time.Millisecond} {
			made := table{workload: w, link: link}
			if text, shown := sectionOf(string(page), made.name()); shown {
				compareBars(t, readPlot(t, made.name()), text, w.Primary)
			}
		}
	}
	for _, g := range growths() {
		text, shown := sectionOf(string(page), g.Name)
		require.True(t, shown, g.Name)
		compareLines(t, readPlot(t, g.Name), text)
	}
}

func readPlot(t *testing.T, name string) *plot {
	t.Helper()
	svg, err := os.ReadFile("../docs/performance/" + name + ".svg")
	require.NoError(t, err)
	p := new(plot)
	require.NoError(t, xml.Unmarshal(svg, p))
	return p
}

// compareBars compares the texts beside the bars with a table.
func compareBars(t *testing.T, p *plot, text, primary string) {
	t.Helper()
	lines := linesOf(text)
	column := slices.Index(lines[0], primary)
	var want, got []string
	for _, cells := range lines[2:] {
		if value := strings.Fields(cells[column])[0]; value != "failed:" {
			want = append(want, cells[0]+" "+value)
		}
	}
	for i, label := range p.Texts {
		if label.Anchor == "end" {
			got = append(got, label.Text+" "+strings.Fields(p.Texts[i+1].Text)[0])
		}
	}
	assert.Equal(t, want, got)
	assert.Len(t, p.Bars, len(want))
}

// compareLines compares the heights of the dots with a table.
func compareLines(t *testing.T, p *plot, said string) {
	t.Helper()
	times := slices.DeleteFunc(slices.Clone(p.Texts), func(t text) bool { return t.Anchor != "end" })
	first, last := times[0], times[len(times)-1]
	highest, err := strconv.ParseFloat(last.Text, 64)
	require.NoError(t, err)
	lines := linesOf(said)
	for i, operation := range lines[0][1:] {
		dots := slices.DeleteFunc(slices.Clone(p.Dots), func(d dot) bool { return d.Class != "series"+strconv.Itoa(i) })
		require.Len(t, dots, len(lines[2:])+1, "%s: one is in the legend", operation)
		for j, cells := range lines[2:] {
			want, err := strconv.ParseFloat(cells[1+i], 64)
			require.NoError(t, err)
			got := highest * (first.Y - 4 - dots[j].Y) / (first.Y - last.Y)
			assert.InDelta(t, want, got, highest/1000, "%s: %s", operation, cells[0])
		}
	}
}

// linesOf returns the cells of the lines of a table, which is all of a text that begins with "|".
func linesOf(text string) [][]string {
	var lines [][]string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			lines = append(lines, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return lines
}

// cut returns a line of a table without its last cell, and that cell.
func cut(line string) (rest, last string) {
	cells := strings.Split(strings.TrimSpace(line), "|")
	n := len(cells) - 2
	return strings.Join(cells[:n], "|"), strings.TrimSpace(cells[n])
}

func withoutLast(table string) []string {
	var rest []string
	for line := range strings.Lines(table) {
		one, _ := cut(line)
		rest = append(rest, one)
	}
	return rest
}

// lastOf returns the last cell of each line, or 0 if it is not a number.
func lastOf(table string) []float64 {
	var all []float64
	for line := range strings.Lines(table) {
		_, last := cut(line)
		n, _ := strconv.Atoi(last)
		all = append(all, float64(n))
	}
	return all
}
