package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A costLine is the cost of one operation.
type costLine struct {
	object, operation string
	roundTrips        int
	commands          int // sent by clients
	calls             int // made by scripts on the server
	allocations       int // of the client; -1 if other goroutines allocate at the same time
}

// costsName is the name of the table of costs in flags and pages.
const costsName = "costs"

// costRounds is how often each operation is counted.
const costRounds = 11

// allocationRounds is how often the allocations of each operation are counted.
const allocationRounds = 101

// countCosts returns the cost of each operation of each object on the server at addr. It must run
// alone: allocations of other goroutines in this process would count too.
func countCosts(ctx context.Context, addr string) ([]costLine, error) {
	var lines []costLine
	for _, s := range scenarios() {
		counted, err := countScenario(ctx, addr, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.object, err)
		}
		lines = append(lines, counted...)
	}
	return lines, nil
}

// countScenario first counts commands, and then allocations, because the count of commands itself
// allocates.
func countScenario(ctx context.Context, addr string, s scenario) ([]costLine, error) {
	c, err := newCounting(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	steps, err := s.steps(c)
	if err != nil {
		return nil, err
	}
	if err := c.warmUp(steps); err != nil {
		return nil, err
	}
	read := c.monitor.read
	if s.shared {
		read = c.monitor.quiet
	}
	travels, err := c.countTravels(steps, read)
	if err != nil {
		return nil, err
	}
	allocations := slices.Repeat([]int{-1}, len(steps))
	if !s.shared {
		c.monitor.close() // otherwise the server would keep sending to it
		if allocations, err = c.countAllocations(steps); err != nil {
			return nil, err
		}
	}
	var lines []costLine
	for i, step := range steps {
		if step.name != "" {
			t := travels[i]
			lines = append(lines, costLine{s.object, step.name, t.roundTrips, t.commands, t.calls, allocations[i]})
		}
	}
	return lines, nil
}

// costTable returns the table as text.
func costTable(lines []costLine) string {
	var b strings.Builder
	b.WriteString("| object | operation | round trips | commands sent | calls in scripts | allocations |\n|---|---|--:|--:|--:|--:|\n")
	last := ""
	for _, line := range lines {
		object := ""
		if line.object != last {
			object, last = line.object, line.object
		}
		allocations := absent
		if line.allocations >= 0 {
			allocations = strconv.Itoa(line.allocations)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s |\n", object, line.operation, line.roundTrips, line.commands, line.calls, allocations)
	}
	return b.String()
}
