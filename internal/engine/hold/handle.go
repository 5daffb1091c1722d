// Package hold has what a program gets from an acquisition: the handle of a hold, the contexts for
// the work under it, and what else ends with it. What is held is behind an interface. A Set counts
// the holds of one owner.
package hold

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// Handle is the right to release a lock, and the way to learn that it is lost: what programs have
// as a Hold, which documents its methods. Any goroutine may call them. A nil handle behaves like a
// released one.
type Handle struct{ backend Backend }

// New makes the handle of a hold. The client reports a handle that the garbage collector finds
// while the hold lasts, and never releases such a hold: the program may still be in the critical
// section. A finalizer for each hold would cost a tenth of an uncontended Lock and Unlock. So a
// hold keeps its handle until its first renewal: most are over by then.
func New(of Backend) *Handle {
	h := &Handle{of}
	if keeper := of.Keeper(); keeper != nil {
		keeper.handle.Store(h)
	} else {
		runtime.SetFinalizer(h, (*Handle).abandoned)
	}
	return h
}

// abandoned runs in the goroutine of the garbage collector, so it only reports.
func (h *Handle) abandoned() {
	reporter := h.backend.Unreleased()
	if reporter == nil {
		return
	}
	var attrs []slog.Attr
	if owner := h.backend.Owner(); !owner.IsZero() {
		attrs = append(attrs, slog.String("owner", owner.String()))
	}
	reporter.Log(report.NoticeUnreleased, h.backend.Name(), attrs...)
}

// Backend returns the hold of which h is a handle. It is never nil.
func (h *Handle) Backend() Backend {
	if h == nil || h.backend == nil {
		return none{}
	}
	return h.backend
}

// Name returns the name of the lock as the program gave it.
func (h *Handle) Name() string { return h.Backend().Name() }

// Owner returns the owner as it is in Redis.
func (h *Handle) Owner() identity.Owner { return h.Backend().Owner() }

// Share returns the owner, and lets the program enter the hold with it.
func (h *Handle) Share() identity.Owner { return h.Backend().Share() }

// Token returns the fencing token, or 0 if the lock has none.
func (h *Handle) Token() int64 { return h.Backend().Token() }

// Count returns how often this client holds the lock for this owner.
func (h *Handle) Count() int { return h.Backend().Count() }

// ValidFor returns how long the program can rely on the hold if the server never answers again.
func (h *Handle) ValidFor() time.Duration { return h.Backend().ValidFor() }

// Err returns nil while the lock is held, and afterwards why it is not.
func (h *Handle) Err() error { return h.Backend().Err() }

// Lost returns a channel that closes when the hold is lost.
func (h *Handle) Lost() <-chan struct{} {
	life, mu := h.Backend().Life()
	return life.whenLost(mu)
}

// Members returns the holds of the members, nil where there is none.
func (h *Handle) Members() []*Handle { return h.Backend().Members() }

// Member returns the hold of the member with that name, preferably one that is still held, or nil.
func (h *Handle) Member(name string) *Handle {
	var found *Handle
	for _, m := range h.Members() {
		if m.Name() != name {
			m = m.Member(name)
		}
		if m.Err() == nil {
			return m
		}
		if found == nil {
			found = m
		}
	}
	return found
}

// Extend makes the lease last at least d from now.
func (h *Handle) Extend(ctx context.Context, d time.Duration) error {
	if err := lease.Check("the extension", d); err != nil {
		return fault.Op("extend", h.Name(), err)
	}
	if err := h.Err(); err != nil {
		return fault.Op("extend", h.Name(), fault.NotHeld(err))
	}
	return h.Backend().Extend(ctx, d)
}

// Unlock releases the hold.
func (h *Handle) Unlock(ctx context.Context) error {
	of := h.Backend()
	err := of.Unlock(ctx)
	if keeper := of.Keeper(); h != nil && err == nil && (keeper == nil || keeper.handle.Load() == nil) {
		runtime.SetFinalizer(h, nil)
	}
	runtime.KeepAlive(h) // until here it does not count as dropped
	return err
}

// During calls fn under the hold, and releases the hold.
func (h *Handle) During(ctx context.Context, fn func(context.Context) error) (err error) {
	defer func() {
		lost := h.Err()
		unlocked := h.Unlock(ctx)
		switch {
		case lost != nil:
			if err == lost { //nolint:errorlint // fn returned the cause of its context, and nothing else
				err = nil
			}
			err = errors.Join(err, fault.Op("do", h.Name(), lost))
		case unlocked != nil:
			err = errors.Join(err, fault.Unreleased(unlocked))
		}
	}()
	return fn(h.Context(ctx))
}
