package lockorder

import (
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// set is a set of mutexes, by number.
type set uint64

func (s set) each(do func(m int)) {
	for m := range 64 {
		if s&(1<<m) != 0 {
			do(m)
		}
	}
}

// analysis is the state of one run of Of.
type analysis struct {
	fset       *token.FileSet
	own        map[*types.Package]bool // the packages to analyze
	first      *types.Package
	mutexTypes []string

	numbers   map[string]int // of the mutexes
	names     []string
	functions []*ssa.Function
	callees   map[ssa.CallInstruction][]*ssa.Function
	callers   map[*ssa.Function][]ssa.CallInstruction
	summaries map[*ssa.Function]*summary

	changed bool   // a summary has grown
	found   *Order // nil until all summaries are complete
}

// summary is what a call of a function does with mutexes.
type summary struct {
	takes   set // locks, at any depth
	leaves  set // has still locked when it returns
	drops   set // unlocks without having locked it
	through map[int]step
}

// step is where a function takes a mutex: itself, or in a callee.
type step struct {
	at     token.Pos
	callee *ssa.Function
}

// run follows all functions until nothing new is found, and then once more to record the result.
func (a *analysis) run(all map[*ssa.Function]bool) {
	for f := range all {
		if len(f.Blocks) > 0 && a.ours(f) {
			a.functions = append(a.functions, f)
			a.summaries[f] = &summary{through: map[int]step{}}
		}
	}
	slices.SortFunc(a.functions, func(f, g *ssa.Function) int { return strings.Compare(f.String(), g.String()) })
	for a.changed = true; a.changed; {
		a.changed = false
		for _, f := range a.functions {
			a.follow(f)
		}
	}
	a.found = &Order{Nestings: map[Nesting][]string{}}
	for _, f := range a.functions {
		a.follow(f)
	}
}

// ours reports whether a function is one of those to analyze, or was generated from one.
func (a *analysis) ours(f *ssa.Function) bool {
	switch {
	case f.Parent() != nil:
		return a.ours(f.Parent())
	case f.Pkg != nil:
		return a.own[f.Pkg.Pkg]
	case f.Object() != nil:
		return a.own[f.Object().Pkg()]
	}
	return false
}

func (a *analysis) order() *Order {
	delete(a.numbers, Wait)
	delete(a.numbers, Foreign)
	a.found.Mutexes = slices.Sorted(maps.Keys(a.numbers))
	return a.found
}

// follow goes all ways through a function, with the mutexes held on each.
func (a *analysis) follow(f *ssa.Function) {
	held, seen := make([]set, len(f.Blocks)), make([]bool, len(f.Blocks))
	work := []*ssa.BasicBlock{f.Blocks[0]}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		seen[b.Index] = true
		now := held[b.Index]
		for _, instr := range b.Instrs {
			now = a.after(f, instr, now)
		}
		for i, next := range b.Succs {
			out := now &^ a.failed(b, i)
			if !seen[next.Index] || held[next.Index]|out != held[next.Index] {
				held[next.Index] |= out
				work = append(work, next)
			}
		}
	}
}

// after returns what is held after an instruction.
func (a *analysis) after(f *ssa.Function, instr ssa.Instruction, held set) set {
	me := a.summaries[f]
	if a.waits(instr) {
		a.take(f, a.numbers[Wait], held, step{at: instr.Pos()})
	}
	switch instr := instr.(type) {
	case *ssa.Call:
		return a.call(f, instr, held)
	case *ssa.Go:
		if reports(instr) {
			a.call(f, instr, held)
		}
	case *ssa.Defer:
		if drops := a.dropped(instr); drops != 0 {
			a.grow(&me.drops, drops&^held)
		} else {
			a.call(f, instr, held)
		}
	case *ssa.Return:
		a.grow(&me.leaves, held&^a.droppedAtEnd(f))
	}
	return held
}

// waits reports whether an instruction waits for another goroutine or for a server.
func (a *analysis) waits(instr ssa.Instruction) bool {
	switch instr := instr.(type) {
	case *ssa.Select:
		return instr.Blocking
	case *ssa.UnOp:
		return instr.Op == token.ARROW
	case ssa.CallInstruction:
		c := instr.Common()
		if c.IsInvoke() {
			return c.Method.Pkg() != nil && strings.HasSuffix(c.Method.Pkg().Path(), "/rueidis") && strings.HasPrefix(c.Method.Name(), "Do")
		}
		callee := c.StaticCallee()
		return callee != nil && callee.String() == "(*sync.WaitGroup).Wait"
	}
	return false
}

// reports reports whether a goroutine sends something when it is done: then somebody may wait for
// it.
func reports(g *ssa.Go) bool {
	f := literal(g.Call.Value)
	if f == nil {
		return false
	}
	for _, b := range f.Blocks {
		for _, instr := range b.Instrs {
			if _, sends := instr.(*ssa.Send); sends {
				return true
			}
		}
	}
	return false
}

// dropped returns the mutexes that a deferred call unlocks.
func (a *analysis) dropped(d *ssa.Defer) set {
	if op, mutexes := a.operation(d); op == unlocks {
		return mutexes
	}
	drops := set(0)
	for _, callee := range a.targets(d) {
		drops |= a.summaries[callee].drops
	}
	return drops
}

// droppedAtEnd returns the mutexes that the deferred calls of a function unlock.
func (a *analysis) droppedAtEnd(f *ssa.Function) set {
	drops := set(0)
	for _, b := range f.Blocks {
		for _, instr := range b.Instrs {
			if d, is := instr.(*ssa.Defer); is {
				drops |= a.dropped(d)
			}
		}
	}
	return drops
}

// call returns what is held after a call.
func (a *analysis) call(f *ssa.Function, site ssa.CallInstruction, held set) set {
	me := a.summaries[f]
	op, mutexes := a.operation(site)
	after := held
	for _, callee := range a.targets(site) {
		sum := a.summaries[callee]
		sum.takes.each(func(m int) { a.take(f, m, held, step{site.Pos(), callee}) })
		a.grow(&me.drops, sum.drops&^held)
		after = after&^sum.drops | sum.leaves
	}
	switch op {
	case unlocks:
		a.grow(&me.drops, mutexes&^held)
		return after &^ mutexes
	case locks:
		mutexes.each(func(m int) { a.take(f, m, held, step{at: site.Pos()}) })
		return after | mutexes
	case tries:
		return after | mutexes
	}
	if a.unknown(site) {
		a.take(f, a.numbers[Foreign], held, step{at: site.Pos()})
	}
	return after
}

func (a *analysis) grow(s *set, by set) {
	if *s|by != *s {
		*s |= by
		a.changed = true
	}
}

// take records that a function takes a mutex.
func (a *analysis) take(f *ssa.Function, m int, held set, at step) {
	s := a.summaries[f]
	a.grow(&s.takes, 1<<m)
	if _, known := s.through[m]; !known {
		s.through[m] = at
	}
	if a.found == nil {
		return
	}
	held.each(func(h int) {
		n := Nesting{a.names[h], a.names[m]}
		if a.found.Nestings[n] == nil {
			a.found.Nestings[n] = a.trace(f, m, at)
		}
	})
}

// trace returns the calls that lead to a place that takes a mutex.
func (a *analysis) trace(f *ssa.Function, m int, at step) (calls []string) {
	for {
		calls = append(calls, f.Name()+" at "+a.place(at.at))
		if at.callee == nil {
			return calls
		}
		f = at.callee
		at = a.summaries[f].through[m]
	}
}

func (a *analysis) place(pos token.Pos) string {
	p := a.fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
}
