package hold

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

// Backend is what a [Handle] is a handle of: one hold of an ownership, or the holds of several
// locks that count as one. Any goroutine may call its methods. Only Unlock and Extend send anything
// to the server.
type Backend interface {
	Name() string          // as the program gave it
	Owner() identity.Owner // zero if it has none of its own
	Share() identity.Owner // the same, for acquisitions that enter the hold
	Token() int64          // 0 if the lock has no tokens

	// Err is nil while it is held, else why it is not, as of the time of the call.
	Err() error
	// ValidFor and Count are 0 when it is over.
	ValidFor() time.Duration
	Count() int
	// Life returns the state of the hold and what ends with it, and the mutex that guards both.
	Life() (*Lifecycle, *sync.Mutex)

	// Extend is called only while Err is nil.
	Extend(ctx context.Context, d time.Duration) error
	Unlock(ctx context.Context) error
	// Confine limits a hold that was renewed without an end until now.
	Confine(bounds Confinement)

	// Members returns the latest holds of the members if it is a hold of several locks. An element
	// is nil if that member has not been acquired.
	Members() []*Handle
	// Unreleased returns what reports a handle that was dropped, or nil if there is nothing to
	// report.
	Unreleased() *report.Reporter
	// Keeper returns what keeps the handle until the first renewal, always the same. It is nil if
	// the handle has a finalizer from the start.
	Keeper() *Keeper
}

// Keeper keeps the handle of a hold, so that the garbage collector does not find it. It is part of
// the hold.
type Keeper struct{ handle atomic.Pointer[Handle] }

// Watch stops keeping the handle: if the program drops it, the garbage collector finds it.
func (k *Keeper) Watch() {
	if h := k.handle.Swap(nil); h != nil {
		runtime.SetFinalizer(h, (*Handle).abandoned)
	}
}

// Confinement is a limit that applies to a hold from a certain time on.
type Confinement struct {
	Fixed bool          // its lease is no longer renewed
	Max   time.Duration // how long it may last, or 0 for no limit
	From  time.Time     // counted from here
}

// Ownerless is part of a backend that has no owner of its own.
type Ownerless struct{}

// Owner implements [Backend].
func (Ownerless) Owner() identity.Owner { return identity.Owner{} }

// Share implements [Backend].
func (Ownerless) Share() identity.Owner { return identity.Owner{} }

// Token implements [Backend].
func (Ownerless) Token() int64 { return 0 }

// Keeper implements [Backend]. A hold of several locks costs so much that a finalizer does not
// matter.
func (Ownerless) Keeper() *Keeper { return nil }

// none is the backend of a nil handle. It behaves like a released hold whose loss has been
// reported.
type none struct{ Ownerless }

// Name implements [Backend].
func (none) Name() string { return "" }

// Err implements [Backend].
func (none) Err() error { return fault.ErrNotHeld }

// ValidFor implements [Backend].
func (none) ValidFor() time.Duration { return 0 }

// Count implements [Backend].
func (none) Count() int { return 0 }

// Extend implements [Backend].
func (none) Extend(context.Context, time.Duration) error { return fault.ErrNotHeld }

// Unlock implements [Backend].
func (none) Unlock(context.Context) error { return fault.ErrNotHeld }

// Confine implements [Backend].
func (none) Confine(Confinement) {}

// Members implements [Backend].
func (none) Members() []*Handle { return nil }

// Unreleased implements [Backend].
func (none) Unreleased() *report.Reporter { return nil }

// Life implements [Backend].
func (none) Life() (*Lifecycle, *sync.Mutex) {
	return &Lifecycle{cause: fault.ErrNotHeld}, new(sync.Mutex)
}
