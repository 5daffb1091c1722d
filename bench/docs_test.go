package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
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

// The table of costs is up to date. The test runs alone, because it counts allocations.
func TestCostsOfThePage(t *testing.T) {
	needServer(t)
	tables, err := os.ReadFile(rawName)
	require.NoError(t, err)
	said, found := sectionOf(string(tables), costsName)
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

// pageAndTables returns the performance page, and the page of all tables.
func pageAndTables(t *testing.T) (page, tables string) {
	t.Helper()
	first, err := os.ReadFile("../docs/performance.md")
	require.NoError(t, err)
	second, err := os.ReadFile(rawName)
	require.NoError(t, err)
	return string(first), string(second)
}

// The plots of the page show the figures of the tables.
func TestPlotsOfThePage(t *testing.T) {
	t.Parallel()
	page, tables := pageAndTables(t)
	compared := 0
	for _, w := range workloads() {
		for _, link := range []time.Duration{0, 2 * time.Millisecond} {
			name := table{workload: w, link: link}.name()
			if text, shown := sectionOf(tables, name); shown && strings.Contains(page, "/"+name+".svg)") {
				compareBars(t, readPlot(t, name), text, w)
				compared++
			}
		}
	}
	for _, g := range growths() {
		text, found := sectionOf(tables, g.Name)
		require.True(t, found, g.Name)
		if strings.Contains(page, "/"+g.Name+".svg)") {
			compareLines(t, readPlot(t, g.Name), text)
			compared++
		}
	}
	files, err := filepath.Glob("../docs/performance/*")
	require.NoError(t, err)
	assert.Len(t, files, compared, "the page shows each plot")
}

// The summary of the page has the figures of the tables.
func TestSummaryOfThePage(t *testing.T) {
	t.Parallel()
	page, tables := pageAndTables(t)
	said, found := sectionOf(page, summaryName)
	require.True(t, found)
	assert.Equal(t, summarize(tables), said)
	for _, p := range picks {
		text, found := sectionOf(tables, p.table)
		require.True(t, found, p.table)
		assert.Contains(t, cellsOf(text)[0], p.metric)
	}
}

func TestSummaryTakesEachFigureFromItsTable(t *testing.T) {
	t.Parallel()
	tables := "<!-- bench uncontended-1 -->\n| peer | p50 µs |\n|---|--:|\n| floor | 78 |\n| redsync | 117 (1 of 2 failed: why) |\n<!-- end -->\n" +
		"<!-- bench fair -->\n| peer | handovers/s |\n|---|--:|\n| floor | failed: why |\n<!-- end -->\n"
	lines := strings.Split(summarize(tables), "\n")
	assert.Equal(t, "| floor | 78 | – | – | – | failed | – | – |", lines[2])
	assert.Equal(t, "| redsync | 117 | – | – | – | – | – | – |", lines[3])
	assert.Empty(t, lines[4], "other peers have no figures")
}

// A run fills the tables that it has measured, and the plots that the page shows. It keeps the
// rest.
func TestDocsAreFilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	raw, docs := filepath.Join(dir, "results.md"), filepath.Join(dir, "performance")
	section := func(name string) string { return "<!-- bench " + name + " -->\nold\n<!-- end -->\n" }
	tables := section("peers") + section("uncontended-1") + section("uncontended-64") + section(costsName)
	require.NoError(t, os.WriteFile(raw, []byte(tables), 0o600))
	require.NoError(t, os.WriteFile(docs+".md", []byte(section("uncontended-1")+section(summaryName)), 0o600))
	w := workloads()[0]
	b := &bench{
		settings: &settings{only: "uncontended-*", links: []time.Duration{0}, docs: docs, repetitions: 2},
		peers:    peers(), version: "Redis 7",
		samples: []sample{{Workload: w.Name, Peer: "floor", result: result{Metrics: Metrics{w.Primary: 7, "p50 µs": 3}}}},
	}
	require.NoError(t, b.writeDocs(raw))
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	text, _ := sectionOf(read(raw), w.Name)
	assert.Contains(t, text, "| floor | 7 | 1.00 | 3 |")
	assert.Contains(t, text, "Redis 7, ")
	for _, kept := range []string{"uncontended-64", costsName} {
		assert.Contains(t, read(raw), section(kept))
	}
	text, _ = sectionOf(read(docs+".md"), w.Name)
	assert.Equal(t, "!["+w.Title+"](performance/uncontended-1.svg)\n", text)
	assert.FileExists(t, filepath.Join(docs, "uncontended-1.svg"))
	text, _ = sectionOf(read(docs+".md"), summaryName)
	assert.Contains(t, text, "| floor | 3 |")
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
func compareBars(t *testing.T, p *plot, text string, w Workload) {
	t.Helper()
	lines := cellsOf(text)
	column := slices.Index(lines[0], w.Primary)
	var want, got []string
	bars := 0
	for _, cells := range lines[2:] {
		name, value := cells[0], strings.Fields(cells[column])[0]
		if len(w.Sizes) > 0 {
			if strings.Contains(name, "-") {
				continue // a variant
			}
			name += ", " + cells[1] + " clients"
		}
		if value = strings.TrimSuffix(value, ":"); value != "failed" {
			bars++
		}
		want = append(want, name+" "+value)
	}
	for i, label := range p.Texts {
		if label.Anchor == "end" {
			got = append(got, label.Text+" "+strings.TrimSuffix(strings.Fields(p.Texts[i+1].Text)[0], ","))
		}
	}
	assert.Equal(t, want, got)
	assert.Len(t, p.Bars, bars)
}

// compareLines compares the heights of the dots with a table.
func compareLines(t *testing.T, p *plot, said string) {
	t.Helper()
	times := slices.DeleteFunc(slices.Clone(p.Texts), func(t text) bool { return t.Anchor != "end" })
	first, last := times[0], times[len(times)-1]
	highest, err := strconv.ParseFloat(last.Text, 64)
	require.NoError(t, err)
	lines := cellsOf(said)
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
