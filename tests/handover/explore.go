package handover

import (
	"fmt"
	"hash/maphash"
)

// Result is the result of an exploration.
type Result struct {
	States, Steps int
	Depth         int    // the longest of the shortest ways to a state
	Wrong         string // the property that does not hold, or ""
	Trace         []string
}

// graph has all reachable states, and the steps between them.
type graph struct {
	model  *Model
	states []state
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

// Explore visits all states, nearest first, until a property fails. At the end it checks that from each of them
// everybody who waits is served.
func (m *Model) Explore() Result {
	g := &graph{model: m, seed: maphash.MakeSeed()}
	g.add(m.canonical(m.first()), -1)
	for i := int32(0); int(i) < len(g.states); i++ {
		if wrong, last := g.expand(i); wrong != "" {
			return g.result(wrong, last)
		}
	}
	g.begin = append(g.begin, uint32(len(g.edges)))
	if wrong, last := g.stranded(); wrong != "" {
		return g.result(wrong, last)
	}
	return g.result("", -1)
}

// add returns the index of a state.
func (g *graph) add(s state, parent int32) int32 {
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
func (g *graph) wrap(n uint32) uint32 { return n & uint32(len(g.table)-1) }

// grow enlarges the table.
func (g *graph) grow() {
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

// expand finds the states that follow a state, until a property fails: then last is the state that is wrong.
func (g *graph) expand(i int32) (wrong string, last int32) {
	m := g.model
	g.begin = append(g.begin, uint32(len(g.edges)))
	m.next(g.states[i], func(st step, n state) {
		if wrong != "" {
			return
		}
		g.steps++
		wrong = st.wrong
		if wrong == "" {
			wrong = m.wrong(&n)
		}
		if m.Only != "" && wrong != m.Only {
			wrong = ""
		}
		to := g.add(m.canonical(n), i)
		if wrong != "" {
			last = to
			return
		}
		switch st.rule.class() {
		case progress:
			g.edges = append(g.edges, edge(to))
		case timer:
			g.edges = append(g.edges, edge(to)|byTimer)
		}
	})
	return wrong, last
}

// stranded finds a state from which a waiter is never served. It first looks for a state in which nothing was lost so
// far and from which messages alone do not lead there, without a poll or the end of a lease. Then it looks for any
// state from which time and polls do not lead there without further faults.
func (g *graph) stranded() (wrong string, last int32) {
	m := g.model
	prompt := g.served(func(e edge) bool { return e&byTimer == 0 })
	for i := range g.states {
		if g.states[i].calm && !prompt[i] && m.Only != Stranded {
			return Slow, int32(i)
		}
	}
	prompt = g.served(func(edge) bool { return true })
	for i := range g.states {
		if !prompt[i] {
			return Stranded, int32(i)
		}
	}
	return "", -1
}

// served returns the states from which the chosen edges lead to a state where nobody waits.
func (g *graph) served(use func(edge) bool) []bool {
	begin := make([]uint32, len(g.states)+2) // shifted by one while it is filled
	for _, e := range g.edges {
		if use(e) {
			begin[e&^byTimer+2]++
		}
	}
	for i := range g.states {
		begin[i+2] += begin[i+1]
	}
	from := make([]int32, begin[len(g.states)+1])
	for i := range g.states {
		for _, e := range g.edges[g.begin[i]:g.begin[i+1]] {
			if use(e) {
				from[begin[e&^byTimer+1]] = int32(i)
				begin[e&^byTimer+1]++
			}
		}
	}
	reached, todo := make([]bool, len(g.states)), []int32{}
	for i := range g.states {
		if g.states[i].done() {
			reached[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range from[begin[i]:begin[i+1]] {
			if !reached[j] {
				reached[j] = true
				todo = append(todo, j)
			}
		}
	}
	return reached
}

func (g *graph) result(wrong string, last int32) Result {
	r := Result{States: len(g.states), Steps: g.steps, Depth: int(g.depth[len(g.depth)-1]), Wrong: wrong}
	if wrong != "" {
		r.Trace = g.trace(last)
	}
	return r
}

// String returns a line for a test's log.
func (r Result) String() string {
	return fmt.Sprintf("%d states, %d steps, the farthest state is %d steps away", r.States, r.Steps, r.Depth)
}
