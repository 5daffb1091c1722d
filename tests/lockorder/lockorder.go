// Package lockorder finds out from source code which mutexes are locked while others are held.
//
// It follows all ways through each function and through the functions that it calls, including
// calls by interfaces and function values as far as their flow is known. It does not distinguish
// values of a type: two mutexes that are the same field count as one. A goroutine starts with
// nothing held, but a goroutine that is waited for counts as called, because it belongs to a local
// [sync.WaitGroup] or sends its result.
package lockorder

import (
	"cmp"
	"errors"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/cha"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// Nesting means that one mutex is locked while another is held.
type Nesting struct{ Held, Taken string }

// Order is what code does with its mutexes. The name of a mutex is its type and field, with its
// package unless that package has the shortest path of all.
type Order struct {
	Mutexes  []string
	Nestings map[Nesting][]string // each with the calls that lead to one of its places
}

// What else happens under a mutex, in place of the mutex that is taken.
const (
	Wait    = "a wait"       // for another goroutine, or for the answer to a command
	Foreign = "foreign code" // given to the package, or unknown
)

// Of analyses packages in a folder. In addition to those of package sync, types of these packages
// with the given names are mutexes.
func Of(dir string, mutexTypes []string, patterns ...string) (*Order, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: dir}, patterns...)
	own := map[*types.Package]bool{}
	for _, p := range loaded {
		own[p.Types] = true
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return nil, err
	}
	first := slices.MinFunc(loaded, func(p, q *packages.Package) int { return cmp.Compare(len(p.PkgPath), len(q.PkgPath)) })
	prog, _ := ssautil.Packages(loaded, ssa.InstantiateGenerics)
	prog.Build()
	a := &analysis{
		fset:       prog.Fset,
		own:        own,
		first:      first.Types,
		mutexTypes: mutexTypes,
		numbers:    map[string]int{},
		callees:    map[ssa.CallInstruction][]*ssa.Function{},
		callers:    map[*ssa.Function][]ssa.CallInstruction{},
		summaries:  map[*ssa.Function]*summary{},
	}
	a.number(Wait)
	a.number(Foreign)
	all := a.functionsOf(prog)
	coarse := cha.CallGraph(prog)
	a.learnCalls(vta.CallGraph(all, coarse), coarse)
	a.run(all)
	return a.order(), nil
}

// functionsOf returns all functions, including those that nothing calls.
func (a *analysis) functionsOf(prog *ssa.Program) map[*ssa.Function]bool {
	all := ssautil.AllFunctions(prog)
	for pkg := range a.own {
		for _, name := range pkg.Scope().Names() {
			named, is := pkg.Scope().Lookup(name).Type().(*types.Named)
			if !is || named.TypeParams() != nil {
				continue
			}
			for method := range named.Methods() {
				if f := prog.FuncValue(method); f != nil {
					all[f] = true
				}
			}
		}
	}
	return all
}

// learnCalls records which function calls which. If the flow of values says nothing about a call of
// a method of our own interfaces, all types that have the method are possible.
func (a *analysis) learnCalls(fine, coarse *callgraph.Graph) {
	add := func(g *callgraph.Graph, wanted func(ssa.CallInstruction) bool) {
		for _, node := range g.Nodes {
			for _, e := range node.Out {
				if e.Site != nil && wanted(e.Site) {
					a.callees[e.Site] = append(a.callees[e.Site], e.Callee.Func)
					a.callers[e.Callee.Func] = append(a.callers[e.Callee.Func], e.Site)
				}
			}
		}
	}
	add(fine, func(ssa.CallInstruction) bool { return true })
	known := map[ssa.CallInstruction]bool{}
	for site := range a.callees {
		known[site] = true
	}
	add(coarse, func(site ssa.CallInstruction) bool {
		c := site.Common()
		return !known[site] && c.IsInvoke() && a.own[c.Method.Pkg()]
	})
}

// apart are functions of other packages that call their argument in a goroutine of its own, or
// leave the call to others.
var apart = []string{"(*sync.WaitGroup).Go", "time.AfterFunc", "context.AfterFunc", "sync.OnceFunc"}

// targets returns the functions with known code that a call calls before it returns. A function of
// another package calls the functions that are its arguments.
func (a *analysis) targets(site ssa.CallInstruction) (targets []*ssa.Function) {
	name := ""
	for _, callee := range a.callees[site] {
		name = callee.String()
		if a.summaries[callee] != nil {
			targets = append(targets, callee)
		}
	}
	args := site.Common().Args
	if targets != nil || slices.Contains(apart, name) && !waitedFor(name, args) {
		return targets
	}
	for _, arg := range args {
		if f := literal(arg); f != nil {
			targets = append(targets, f)
		}
	}
	return targets
}

// waitedFor reports whether a goroutine belongs to a group that is a variable of the function that
// starts it, which then waits for it.
func waitedFor(name string, args []ssa.Value) bool {
	if name != "(*sync.WaitGroup).Go" {
		return false
	}
	_, local := args[0].(*ssa.Alloc)
	return local
}

// literal returns the function that a value is, or nil.
func literal(v ssa.Value) *ssa.Function {
	switch v := v.(type) {
	case *ssa.Function:
		return v
	case *ssa.MakeClosure:
		return v.Fn.(*ssa.Function)
	case *ssa.ChangeType:
		return literal(v.X)
	}
	return nil
}

// unknown reports whether a call calls code of the program or unknown code. The cancel functions
// and contexts of package context, and rueidis, count as known: they do not call back before they
// return.
func (a *analysis) unknown(site ssa.CallInstruction) bool {
	c := site.Common()
	if _, builtin := c.Value.(*ssa.Builtin); builtin || len(a.callees[site]) > 0 || c.StaticCallee() != nil {
		return false
	}
	of := c.Value.Type()
	if named, is := types.Unalias(of).(*types.Named); is && named.Obj().Pkg() != nil {
		path := named.Obj().Pkg().Path()
		return path != "context" && !strings.HasSuffix(path, "/rueidis")
	}
	return true
}
