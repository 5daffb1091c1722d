package latchkey

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// holdBackend is what a [handle] is a handle of: one hold of an ownership, or the holds of several
// locks that count as one. Any goroutine may call its methods. Only Unlock and Extend send anything
// to the server.
type holdBackend interface {
	Name() string          // as the program gave it
	Owner() identity.Owner // zero if it has none of its own
	Token() int64          // 0 if the lock has no tokens

	// Err is nil while it is held, else why it is not, as of the time of the call.
	Err() error
	// ValidFor and Count are 0 when it is over.
	ValidFor() time.Duration
	Count() int
	// Life returns the state of the hold and what ends with it, and the mutex that guards both.
	Life() (*lifecycle, *sync.Mutex)

	// Extend is called only while Err is nil.
	Extend(ctx context.Context, d time.Duration) error
	Unlock(ctx context.Context) error
	// Confine limits a hold that was renewed without an end until now.
	Confine(bounds confinement)

	// Members returns the latest holds of the members if it is a hold of several locks. An element is
	// nil if that member has not been acquired.
	Members() []*handle
	// Unreleased returns what reports a handle that was dropped, or nil if there is nothing to report.
	Unreleased() *report.Reporter
	// Kept returns what keeps the handle until the first renewal, always the same. It is nil if the
	// handle has a finalizer from the start.
	Kept() *keptHandle
}

// keptHandle keeps the handle of a hold, so that the garbage collector does not find it. It is part of the hold.
type keptHandle struct{ handle atomic.Pointer[handle] }

// Watch leaves the handle to the program: if that drops it, the garbage collector finds it.
func (k *keptHandle) Watch() {
	if h := k.handle.Swap(nil); h != nil {
		runtime.SetFinalizer(h, (*handle).abandoned)
	}
}

// confinement is a limit that applies to a hold from a certain time on.
type confinement struct {
	fixed bool          // its lease is no longer renewed
	max   time.Duration // how long it may last, or 0 for no limit
	from  time.Time     // counted from here
}

// noHold is the backend of a nil handle. It behaves like a released hold whose loss has been
// reported.
type noHold struct{}

// Name implements [holdBackend].
func (noHold) Name() string { return "" }

// Owner implements [holdBackend].
func (noHold) Owner() identity.Owner { return identity.Owner{} }

// Token implements [holdBackend].
func (noHold) Token() int64 { return 0 }

// Err implements [holdBackend].
func (noHold) Err() error { return fault.ErrNotHeld }

// ValidFor implements [holdBackend].
func (noHold) ValidFor() time.Duration { return 0 }

// Count implements [holdBackend].
func (noHold) Count() int { return 0 }

// Extend implements [holdBackend].
func (noHold) Extend(context.Context, time.Duration) error { return fault.ErrNotHeld }

// Unlock implements [holdBackend].
func (noHold) Unlock(context.Context) error { return fault.ErrNotHeld }

// Confine implements [holdBackend].
func (noHold) Confine(confinement) {}

// Members implements [holdBackend].
func (noHold) Members() []*handle { return nil }

// Unreleased implements [holdBackend].
func (noHold) Unreleased() *report.Reporter { return nil }

// Kept implements [holdBackend].
func (noHold) Kept() *keptHandle { return nil }

// Life implements [holdBackend].
func (noHold) Life() (*lifecycle, *sync.Mutex) {
	return &lifecycle{cause: fault.ErrNotHeld}, new(sync.Mutex)
}
