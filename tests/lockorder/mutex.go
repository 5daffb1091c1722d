package lockorder

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// What a call does with a mutex, or "".
const (
	locks   = "locks"
	tries   = "tries" // does not wait, so that no order is needed
	unlocks = "unlocks"
)

// operation returns what a call itself does with mutexes, and with which.
func (a *analysis) operation(site ssa.CallInstruction) (op string, mutexes set) {
	callee := site.Common().StaticCallee()
	if callee == nil || callee.Signature.Recv() == nil || !a.isMutex(callee.Signature.Recv().Type()) {
		return "", 0
	}
	switch method := strings.ToLower(callee.Name()); {
	case strings.Contains(method, "unlock"):
		op = unlocks
	case strings.HasPrefix(method, "try"):
		op = tries
	case strings.Contains(method, "lock"):
		op = locks
	default:
		return "", 0
	}
	return op, a.pointed(site.Common().Args[0], map[ssa.Value]bool{})
}

func (a *analysis) isMutex(t types.Type) bool {
	if p, is := t.(*types.Pointer); is {
		t = p.Elem()
	}
	named, is := t.(*types.Named)
	if !is {
		return false
	}
	name, pkg := named.Obj().Name(), named.Obj().Pkg()
	return pkg.Path() == "sync" && (name == "Mutex" || name == "RWMutex") || a.own[pkg] && slices.Contains(a.mutexTypes, name)
}

// failed returns the mutexes that are not held on one of the ways out of a block, because the call
// that should have locked them has failed, with an error or false.
func (a *analysis) failed(b *ssa.BasicBlock, way int) set {
	branch, is := b.Instrs[len(b.Instrs)-1].(*ssa.If)
	if !is {
		return 0
	}
	cond, bad := branch.Cond, 1
	if not, is := cond.(*ssa.UnOp); is && not.Op == token.NOT {
		cond, bad = not.X, 0
	}
	if compare, is := cond.(*ssa.BinOp); is {
		if c, is := compare.Y.(*ssa.Const); !is || !c.IsNil() {
			return 0
		}
		cond = compare.X
		if compare.Op == token.NEQ {
			bad = 0
		}
	}
	if e, is := cond.(*ssa.Extract); is {
		cond = e.Tuple
	}
	call, is := cond.(*ssa.Call)
	if !is || way != bad {
		return 0
	}
	return a.locked(call)
}

// locked returns the mutexes that a call has locked when it returns successfully.
func (a *analysis) locked(call *ssa.Call) set {
	op, mutexes := a.operation(call)
	if op == unlocks {
		return 0
	}
	for _, callee := range a.targets(call) {
		mutexes |= a.summaries[callee].leaves
	}
	return mutexes
}

// pointed returns the mutexes to which a value may point.
func (a *analysis) pointed(v ssa.Value, seen map[ssa.Value]bool) (s set) {
	if seen[v] {
		return 0
	}
	seen[v] = true
	switch v := v.(type) {
	case *ssa.FieldAddr:
		return a.field(v)
	case *ssa.Global:
		return a.number(v.Name())
	case *ssa.Phi:
		for _, e := range v.Edges {
			s |= a.pointed(e, seen)
		}
	case *ssa.Parameter:
		i := slices.Index(v.Parent().Params, v)
		for _, site := range a.callers[v.Parent()] {
			if args := site.Common().Args; !site.Common().IsInvoke() && i < len(args) {
				s |= a.pointed(args[i], seen)
			}
		}
	case *ssa.FreeVar, *ssa.Alloc:
		for _, stored := range stores(v) {
			s |= a.pointed(stored, seen)
		}
	case *ssa.UnOp:
		return a.pointed(v.X, seen)
	case *ssa.Extract:
		return a.results(v.Tuple, v.Index, seen)
	case *ssa.Call:
		return a.results(v, 0, seen)
	}
	return s
}

// stores returns what a variable may hold: the values stored in it, or its value outside the
// closure that uses it.
func stores(v ssa.Value) (values []ssa.Value) {
	if free, is := v.(*ssa.FreeVar); is {
		closure := free.Parent()
		i := slices.Index(closure.FreeVars, free)
		for _, b := range closure.Parent().Blocks {
			for _, instr := range b.Instrs {
				if made, is := instr.(*ssa.MakeClosure); is && made.Fn == closure {
					values = append(values, made.Bindings[i])
				}
			}
		}
		return values
	}
	for _, user := range *v.Referrers() {
		if store, is := user.(*ssa.Store); is && store.Addr == v {
			values = append(values, store.Val)
		}
	}
	return values
}

// results returns the mutexes to which a result of a call may point.
func (a *analysis) results(v ssa.Value, i int, seen map[ssa.Value]bool) (s set) {
	call, is := v.(*ssa.Call)
	if !is {
		return 0
	}
	for _, callee := range a.targets(call) {
		for _, b := range callee.Blocks {
			if r, is := b.Instrs[len(b.Instrs)-1].(*ssa.Return); is {
				s |= a.pointed(r.Results[i], seen)
			}
		}
	}
	return s
}

// field returns the mutex that is a field of a struct. All instances of a generic struct count as
// one.
func (a *analysis) field(v *ssa.FieldAddr) set {
	holder := v.X.Type().Underlying().(*types.Pointer).Elem()
	field := holder.Underlying().(*types.Struct).Field(v.Field)
	if !a.own[field.Pkg()] {
		return 0
	}
	if named, is := types.Unalias(holder).(*types.Named); is {
		holder = named.Origin()
	}
	name, _, _ := strings.Cut(types.TypeString(holder, a.qualifier), "[")
	return a.number(name + "." + field.Name())
}

// qualifier returns the package in the name of a mutex: "" for the first package.
func (a *analysis) qualifier(p *types.Package) string {
	if p == a.first {
		return ""
	}
	return p.Name()
}

func (a *analysis) number(name string) set {
	n, known := a.numbers[name]
	if !known {
		n = len(a.names)
		a.numbers[name] = n
		a.names = append(a.names, name)
	}
	return 1 << n
}
