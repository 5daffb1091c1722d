package latchkey

import (
	"cmp"
	"context"
	"reflect"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// heldKey is the key under which a context carries the holds under which it runs.
type heldKey struct{}

// heldChain is the innermost of those holds, and the rest.
type heldChain struct {
	hold  *Hold
	outer *heldChain
}

// Context returns a context for the work under the lock. It ends with parent, when the hold is lost
// ([context.Cause] then matches ErrLost, and also ErrMaxHold if that was the reason), when the
// client is closed (ErrClosed), and when Unlock begins (ErrNotHeld). If the hold is already over,
// the context has ended when Context returns. Context sends nothing to the server.
//
// An acquisition of the same lock under the context is a re-entry; other locks are not affected.
// The HoldFrom of the lock ([Lock.HoldFrom]) finds the hold in the context, and in contexts that are
// derived from it.
//
// After the machine has slept, the context may end up to a fifth of a second late; Err and ValidFor
// are right at once.
//
// A hold keeps some 700 bytes for each parent, until the parent or the hold ends. A parent counts
// once, however often you use it (unless it is not comparable). All parents that never end, such as
// [context.Background], count as one; so do all contexts that another hold returns for one parent.
func (h *Hold) Context(parent context.Context) context.Context {
	if h == nil {
		return endedContext(parent, fault.ErrNotHeld) // does not hide a hold that parent carries
	}
	outer, _ := parent.Value(heldKey{}).(*heldChain)
	life, err := h.lifeUnder(rootOf(parent))
	if err != nil {
		life = endedContext(parent, err)
	}
	return &heldContext{Context: parent, life: life, chain: &heldChain{h, outer}}
}

// HoldFrom returns the hold of this lock that ctx carries, or nil: the hold whose [Hold.Context], or
// whose Do, made ctx or one of its ancestors, however many other locks are held in between. A lock
// that is held as a member of a [MultiLock] or a [RedLock] counts. Of a read/write lock each side
// has its own holds. HoldFrom sends nothing to the server. Inside Do it returns the hold, and with
// it the fencing token:
//
//	err := lock.Do(ctx, func(ctx context.Context) error {
//		return save(ctx, lock.HoldFrom(ctx).Token())
//	})
//
// If ctx carries several holds of the lock, as after a re-entry, it is the innermost one that is
// still held. If none is held, it is the innermost one, which is over: [Hold.Err] tells whether ctx
// holds the lock, also for the nil Hold, which behaves like a released one. Only holds of the
// client that made this lock count; that includes a guest's, which entered [By] an owner.
func (p *primitive) HoldFrom(ctx context.Context) *Hold {
	return holdOn(ctx, func(b holdBackend) bool {
		s, is := b.(*holdState)
		return is && s.isOf(p)
	})
}

// isOf reports whether it is a hold of that lock, or of that side of it, in that client.
func (s *holdState) isOf(p *primitive) bool {
	return s.isOn(p, p.spec.side) && s.ownership.lock.spec.family == p.spec.family
}

// isOn reports whether it is a hold of the key of that lock, or of one side of it, in that client.
func (s *holdState) isOn(p *primitive, side keyspace.Kind) bool {
	l := s.ownership.lock
	return l.client == p.client && l.names.Key == p.names.Key && l.spec.side == side
}

// holdFrom returns the innermost live hold on ctx of the key of a lock, or of one side of it, or nil.
func holdFrom(ctx context.Context, p *primitive, side keyspace.Kind) *holdState {
	chain, _ := ctx.Value(heldKey{}).(*heldChain)
	for ; chain != nil; chain = chain.outer {
		if chain.hold.Err() != nil {
			continue // the members of a group that is over are given back a moment later
		}
		h := chain.hold.among(func(b holdBackend) bool {
			s, is := b.(*holdState)
			return is && s.isOn(p, side)
		})
		if h != nil && h.Err() == nil {
			return h.backend.(*holdState)
		}
	}
	return nil
}

// holdOn returns the innermost live hold on ctx, or the innermost one if none is live, for which
// wanted returns true. Members of the holds on ctx count.
func holdOn(ctx context.Context, wanted func(holdBackend) bool) *Hold {
	var over *Hold
	chain, _ := ctx.Value(heldKey{}).(*heldChain)
	for ; chain != nil; chain = chain.outer {
		switch h := chain.hold.among(wanted); {
		case h == nil:
		case h.Err() == nil:
			return h
		case over == nil:
			over = h
		}
	}
	return over
}

// among returns h, or the hold of a member of it, for which wanted returns true; or nil.
func (h *Hold) among(wanted func(holdBackend) bool) *Hold {
	if wanted(h.inner()) {
		return h
	}
	for _, member := range h.inner().latestMembers() {
		if found := member.among(wanted); found != nil {
			return found
		}
	}
	return nil
}

// innermostPermit returns the innermost hold on ctx that is a permit, or nil.
func innermostPermit(ctx context.Context) *Hold {
	chain, _ := ctx.Value(heldKey{}).(*heldChain)
	for ; chain != nil; chain = chain.outer {
		if s, is := chain.hold.inner().(*holdState); is && s.isPermit() {
			return chain.hold
		}
	}
	return nil
}

// rootOf returns a context that ends when parent does, and is the same for as many parents as
// possible.
func rootOf(parent context.Context) context.Context {
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
func (h *Hold) lifeUnder(parent context.Context) (context.Context, error) {
	if err := h.Err(); err != nil {
		return nil, err
	}
	l, mu := h.inner().life()
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

// onEnd registers f to be called with the end of a hold. It fails if the hold is already over.
func onEnd(b holdBackend, f context.CancelCauseFunc) error {
	if err := b.err(); err != nil {
		return err
	}
	l, mu := b.life()
	mu.Lock()
	defer mu.Unlock()
	if err := l.overBecause(); err != nil {
		return err
	}
	d := &dependent{end: f}
	l.addDependent(d, d)
	return nil
}
