package latchkey

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
)

// holdBackend is what a [Hold] is a handle of: one hold of an ownership ([holdState]), or the holds
// of several locks that count as one ([compositeHold]). Any goroutine may call its methods. Only
// unlock and extend send anything to the server.
type holdBackend interface {
	lockName() string
	owner() identity.Owner // zero if it has none of its own
	token() int64          // 0 if the lock has no tokens

	// err is nil while it is held, else why it is not, as of the time of the call.
	err() error
	// validFor and count are 0 when it is over.
	validFor() time.Duration
	count() int
	// life returns the state of the hold and what ends with it, and the mutex that guards both.
	life() (*lifecycle, *sync.Mutex)

	// extend is called only while err is nil.
	extend(ctx context.Context, d time.Duration) error
	unlock(ctx context.Context) error
	// confine limits a hold that was renewed without an end until now.
	confine(bounds confinement)

	// latestMembers is what [Hold.Members] returns.
	latestMembers() []*Hold
	// unreleased returns the client that reports a handle that was dropped, or nil if there
	// is nothing to report.
	unreleased() *Client
	// keepHandle keeps the handle of the hold until its first renewal. If it returns false, the
	// handle has a finalizer from the start.
	keepHandle(h *Hold) bool
	// isWatched reports whether the handle has a finalizer, or is about to get one.
	isWatched() bool
}

// noHold is the backend of a nil Hold. It behaves like a released hold whose loss has been
// reported.
type noHold struct{}

func (noHold) lockName() string                            { return "" }
func (noHold) owner() identity.Owner                       { return identity.Owner{} }
func (noHold) token() int64                                { return 0 }
func (noHold) err() error                                  { return fault.ErrNotHeld }
func (noHold) validFor() time.Duration                     { return 0 }
func (noHold) count() int                                  { return 0 }
func (noHold) extend(context.Context, time.Duration) error { return fault.ErrNotHeld }
func (noHold) unlock(context.Context) error                { return fault.ErrNotHeld }
func (noHold) confine(confinement)                         {}
func (noHold) latestMembers() []*Hold                      { return nil }
func (noHold) unreleased() *Client                         { return nil }
func (noHold) keepHandle(*Hold) bool                       { return true }
func (noHold) isWatched() bool                             { return false }

func (noHold) life() (*lifecycle, *sync.Mutex) {
	return &lifecycle{cause: fault.ErrNotHeld}, new(sync.Mutex)
}
