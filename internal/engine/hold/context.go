package hold

import (
	"cmp"
	"context"
	"iter"
	"reflect"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// heldKey is the key under which a context carries the holds under which it runs.
type heldKey struct{}

// heldChain is the innermost of those holds, and the rest.
type heldChain struct {
	hold  *Handle
	outer *heldChain
}

// On yields the holds under which ctx runs, the innermost first.
func On(ctx context.Context) iter.Seq[*Handle] {
	return func(yield func(*Handle) bool) {
		chain, _ := ctx.Value(heldKey{}).(*heldChain)
		for chain != nil && yield(chain.hold) {
			chain = chain.outer
		}
	}
}

// From returns the innermost live hold on ctx, or the innermost one if none is live, for which
// wanted returns true. Members of the holds on ctx count.
func From(ctx context.Context, wanted func(Backend) bool) *Handle {
	var over *Handle
	for h := range On(ctx) {
		switch found := h.Find(wanted); {
		case found == nil:
		case found.Err() == nil:
			return found
		case over == nil:
			over = found
		}
	}
	return over
}

// Find returns h, or the hold of a member of it, for which wanted returns true; or nil.
func (h *Handle) Find(wanted func(Backend) bool) *Handle {
	if wanted(h.Backend()) {
		return h
	}
	for _, member := range h.Members() {
		if found := member.Find(wanted); found != nil {
			return found
		}
	}
	return nil
}

// Context returns a context for the work under the hold, which it carries. It ends with parent or
// with the hold.
func (h *Handle) Context(parent context.Context) context.Context {
	if h == nil {
		return endedContext(parent, fault.ErrNotHeld) // does not hide a hold that parent carries
	}
	outer, _ := parent.Value(heldKey{}).(*heldChain)
	life, err := h.lifeUnder(RootOf(parent))
	if err != nil {
		life = endedContext(parent, err)
	}
	return &heldContext{Context: parent, life: life, chain: &heldChain{h, outer}}
}

// RootOf returns a context that ends when parent does, and is the same for as many parents as
// possible.
func RootOf(parent context.Context) context.Context {
	if held, is := parent.(*heldContext); is {
		return held.life
	}
	if parent.Done() == nil {
		return context.Background()
	}
	return parent
}

func endedContext(parent context.Context, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(cause)
	return ctx
}

// heldContext has the values of its parent, and ends with its parent or with a hold.
type heldContext struct {
	context.Context // the parent

	life  context.Context // ends with the hold, or with the root of the parent
	chain *heldChain
}

// Done implements [context.Context].
func (c *heldContext) Done() <-chan struct{} { return c.life.Done() }

// Err implements [context.Context].
func (c *heldContext) Err() error { return c.life.Err() }

// Value implements [context.Context]. Keys with which package context finds the canceller and the
// cause go to life; other values are the parent's.
func (c *heldContext) Value(key any) any {
	if key == (heldKey{}) {
		return c.chain
	}
	if value := c.life.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}

// lifeUnder returns a context that ends with the hold and with parent, the same one for each
// parent, or says why the hold is over.
func (h *Handle) lifeUnder(parent context.Context) (context.Context, error) {
	if err := h.Err(); err != nil {
		return nil, err
	}
	l, mu := h.Backend().Life()
	var key any // nil if parent is not comparable
	if reflect.ValueOf(parent).Comparable() {
		key = parent
		if d := l.dependentUnder(mu, key); d != nil {
			return d.ctx, nil
		}
	}
	ctx, cancel := context.WithCancelCause(parent)
	d := &dependent{ctx: ctx, end: cancel}
	life, err := l.addContext(mu, cmp.Or(key, any(d)), d)
	if life != ctx {
		cancel(err)
	}
	return life, err
}

// OnEnd registers f to be called with the end of a hold. It fails if the hold is already over.
func OnEnd(b Backend, f context.CancelCauseFunc) error {
	if err := b.Err(); err != nil {
		return err
	}
	l, mu := b.Life()
	mu.Lock()
	defer mu.Unlock()
	if err := l.OverBecause(); err != nil {
		return err
	}
	l.OnEnd(f)
	return nil
}
