package main

import (
	"fmt"
	"slices"
	"strings"
)

// summaryName is the name of the section of the page with the figures of all peers in one table.
const summaryName = "summary"

// A pick is a column of the summary: a figure of one of the tables in results.md.
type pick struct{ title, table, metric string }

var picks = []pick{
	{"one goroutine alone: p50 µs", "uncontended-1", "p50 µs"},
	{"256 locks at once: grants/s", "uncontended-256", "grants/s"},
	{"one lock: longest wait ms", "contended-8x4", "longest wait ms"},
	{"one lock, link of 2 ms: hand-overs/s", "contended-8x4-2ms", "handovers/s"},
	{"fair lock: hand-overs/s", "fair", "handovers/s"},
	{"read/write lock: grants/s", "readwrite", "grants/s"},
	{"semaphore: grants/s", "semaphore", "grants/s"},
}

// summarize returns the summary of the tables in a page.
func summarize(results string) string {
	var b strings.Builder
	b.WriteString("| peer |")
	for _, p := range picks {
		fmt.Fprintf(&b, " %s |", p.title)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("--:|", len(picks)))
	for _, p := range peers() {
		var figures []string
		for _, from := range picks {
			text, _ := sectionOf(results, from.table)
			figures = append(figures, figureIn(text, p.Name(), from.metric))
		}
		if slices.ContainsFunc(figures, func(figure string) bool { return figure != absent }) {
			fmt.Fprintf(&b, "| %s | %s |\n", p.Name(), strings.Join(figures, " | "))
		}
	}
	return b.String()
}

// figureIn returns the figure of a peer in a table, without the failures that the cell also tells.
func figureIn(text, peer, metric string) string {
	lines := cellsOf(text)
	if len(lines) == 0 {
		return absent
	}
	column := slices.Index(lines[0], metric)
	for _, cells := range lines[1:] {
		if cells[0] == peer && column >= 0 {
			figure, _, _ := strings.Cut(cells[column], " ")
			return strings.TrimSuffix(figure, ":")
		}
	}
	return absent
}

// cellsOf returns the cells of the lines of a table, which is all of a text that begins with "|".
func cellsOf(text string) [][]string {
	var lines [][]string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			lines = append(lines, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return lines
}
