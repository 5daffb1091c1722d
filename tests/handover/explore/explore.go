// Package explore visits all states of a model, and checks that from each of them everybody who
// waits is served.
package explore

import (
	"fmt"
	"hash/maphash"
)

// Model is a protocol with bounds. S is everything that distinguishes two states, and T is a step
// between them.
type Model[S comparable, T Step] interface {
	First() S
	// Next calls yield for each possible step.
	Next(s S, yield func(step T, next S))
	// Canonical returns a state without details that make no difference, and with the clients in a
	// fixed order. It also returns that order, which has the former places of the clients.
	Canonical(s S) (S, Order)
	// Wrong returns the property that a state violates, or "".
	Wrong(s S) string
	// Done reports whether everybody has been served who can be. With prompt, it does not matter
	// whether those are served who ask instead of listening.
	Done(s *S, prompt bool) bool
	// Calm reports that nothing has happened so far that is answered by time alone.
	Calm(s *S) bool
	// Describe returns a line about a step and the state after it. The client in each place has the
	// name that is in that place of names.
	Describe(step T, next S, names Order) string
}

// Step is a step of a model.
type Step interface {
	Class() Class
	// Wrong returns the property that the step itself violates, or "".
	Wrong() string
}

// Class says what a property may count on.
type Class uint8

// The classes of steps.
const (
	Progress Class = iota // happens if nothing goes wrong
	Timer                 // happens some time later
	Choice                // may never happen
)

// The properties of the whole graph.
const (
	Slow     = "nothing was lost, but only a poll or the end of a lease or mark helps"
	Stranded = "somebody who waits is never served"
)

// Result is the result of an exploration.
type Result[S comparable] struct {
	States, Steps int
	Depth         int    // the longest of the shortest ways to a state
	Wrong         string // the property that does not hold, or ""
	Way           []S    // the shortest way to the state in which it does not hold
}

// String returns a line for a test's log.
func (r Result[S]) String() string {
	return fmt.Sprintf("%d states, %d steps, the farthest state is %d steps away", r.States, r.Steps, r.Depth)
}

// graph has all reachable states, and the steps between them.
type graph[S comparable, T Step] struct {
	model  Model[S, T]
	only   string
	states []S
	seed   maphash.Seed
	table  []slot // the states by hash, at least half empty; its length is a power of two
	parent []int32
	depth  []uint16
	edges  []edge   // progress and timers only, by the state in which they begin
	begin  []uint32 // where the edges of a state begin in edges
	steps  int
}

// slot is a place in the table: empty, or the index of a state, plus one.
type slot struct {
	hash  uint32
	state int32
}

// edge is the state that a step leads to, and whether the step needs a timer.
type edge uint32

const byTimer edge = 1 << 31

// All visits all states, nearest first, until a property fails. It checks only the property of that
// name, or all if it is "".
func All[S comparable, T Step](m Model[S, T], only string) Result[S] {
	g := &graph[S, T]{model: m, only: only, seed: maphash.MakeSeed()}
	first, _ := m.Canonical(m.First())
	g.add(first, -1)
	for i := int32(0); int(i) < len(g.states); i++ {
		if wrong, last := g.expand(i); wrong != "" {
			return g.result(wrong, append(g.way(i), last))
		}
	}
	g.begin = append(g.begin, uint32(len(g.edges)))
	if wrong, last := g.stranded(); wrong != "" {
		return g.result(wrong, g.way(last))
	}
	return g.result("", nil)
}

// add returns the index of a state.
func (g *graph[S, T]) add(s S, parent int32) int32 {
	if 2*len(g.states) >= len(g.table) {
		g.grow()
	}
	hash := uint32(maphash.Comparable(g.seed, s))
	at := g.wrap(hash)
	for ; g.table[at] != (slot{}); at = g.wrap(at + 1) {
		if f := g.table[at]; f.hash == hash && g.states[f.state-1] == s {
			return f.state - 1
		}
	}
	i := int32(len(g.states))
	g.table[at] = slot{hash, i + 1}
	g.states = append(g.states, s)
	g.parent = append(g.parent, parent)
	depth := uint16(0)
	if parent >= 0 {
		depth = g.depth[parent] + 1
	}
	g.depth = append(g.depth, depth)
	return i
}

// wrap returns the place in the table for a number.
func (g *graph[S, T]) wrap(n uint32) uint32 { return n & uint32(len(g.table)-1) }

// grow enlarges the table.
func (g *graph[S, T]) grow() {
	old := g.table
	g.table = make([]slot, max(1<<10, 4*len(old)))
	for _, f := range old {
		if f.state == 0 {
			continue
		}
		at := g.wrap(f.hash)
		for g.table[at].state != 0 {
			at = g.wrap(at + 1)
		}
		g.table[at] = f
	}
}

// expand finds the states that follow a state, until a property fails: then last is the state that
// is wrong.
func (g *graph[S, T]) expand(i int32) (wrong string, last S) {
	g.begin = append(g.begin, uint32(len(g.edges)))
	g.model.Next(g.states[i], func(step T, next S) {
		if wrong != "" {
			return
		}
		violated := step.Wrong()
		if violated == "" {
			violated = g.model.Wrong(next)
		}
		next, _ = g.model.Canonical(next)
		g.steps++
		to := g.add(next, i)
		if violated != "" && (g.only == "" || violated == g.only) {
			wrong, last = violated, next
			return
		}
		switch step.Class() {
		case Progress:
			g.edges = append(g.edges, edge(to))
		case Timer:
			g.edges = append(g.edges, edge(to)|byTimer)
		}
	})
	return wrong, last
}

func (g *graph[S, T]) result(wrong string, way []S) Result[S] {
	depth := int(g.depth[len(g.depth)-1])
	return Result[S]{States: len(g.states), Steps: g.steps, Depth: depth, Wrong: wrong, Way: way}
}

// way returns the shortest way to a state.
func (g *graph[S, T]) way(last int32) []S {
	way := make([]S, g.depth[last]+1)
	for i, at := len(way)-1, last; i >= 0; i, at = i-1, g.parent[at] {
		way[i] = g.states[at]
	}
	return way
}
