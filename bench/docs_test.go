package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

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
