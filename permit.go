package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// Permit is a permit of a [PermitSemaphore] that this process has acquired. Its methods may be
// called from any goroutine. A nil Permit behaves like one that was released. Only Extend and
// Release send anything to the server.
type Permit hold.Handle

// handle returns the hold as the inside of the library sees it.
func (p *Permit) handle() *hold.Handle { return (*hold.Handle)(p) }

// ID returns the id of the permit, in the hexadecimal digits that Redisson uses. Anybody who has
// the id can release the permit.
func (p *Permit) ID() string { return p.handle().Owner().String() }

// Release releases the permit, and wakes a waiter. It uses ctx as [Hold.Unlock] does, and has its
// errors: after an error other than ErrNotHeld the client stops renewing the permit and repeats the
// release in the background until the lease ends.
func (p *Permit) Release(ctx context.Context) error { return p.handle().Unlock(ctx) }

// Context returns a context for the work under the permit, as [Hold.Context] does: it ends with
// parent, with the loss of the permit, with the client, and when Release begins. [PermitFrom] finds
// the permit in it.
func (p *Permit) Context(parent context.Context) context.Context { return p.handle().Context(parent) }

// Lost returns a channel that closes when the permit is lost, and not on Release: see [Hold.Lost].
func (p *Permit) Lost() <-chan struct{} { return p.handle().Lost() }

// Err returns nil while the permit is held, and afterwards why it is not: see [Hold.Err].
func (p *Permit) Err() error { return p.handle().Err() }

// ValidFor returns for how long the permit can be relied on if the server never answers again:
// NoExpiry if neither its lease nor, as far as is known, its semaphore ends, 0 when the permit is
// over.
func (p *Permit) ValidFor() time.Duration {
	left := p.handle().ValidFor()
	if left > lease.Longest {
		return lease.NoExpiry
	}
	return left
}

// Extend makes the lease last at least d from now, once: see [Hold.Extend]. After an error such as
// ErrUnavailable the lease is unchanged or d.
func (p *Permit) Extend(ctx context.Context, d time.Duration) error {
	return p.handle().Extend(ctx, d)
}

// PermitFrom returns the innermost permit under which ctx runs, which may be over, or nil: inside
// [PermitSemaphore.Do] it returns the permit, and with it the id.
func PermitFrom(ctx context.Context) *Permit { return (*Permit)(semaphore.Innermost(ctx)) }

// PermitState says what happened to a permit in a release by id.
type PermitState int

const (
	// PermitUndecided means that no answer came: if the error matches ErrUnknownOutcome, the
	// release is repeated in the background.
	PermitUndecided PermitState = PermitState(semaphore.Undecided)
	// PermitReleased means that it was held until now.
	PermitReleased PermitState = PermitState(semaphore.Released)
	// PermitExpired means that its lease had ended: another process may have had it since.
	PermitExpired PermitState = PermitState(semaphore.Expired)
	// PermitUnknown means that there is no permit with that id, or no longer.
	PermitUnknown PermitState = PermitState(semaphore.Unknown)
)

// String returns the state as a word.
func (s PermitState) String() string {
	switch s {
	case PermitReleased:
		return "released"
	case PermitExpired:
		return "expired"
	case PermitUnknown:
		return "unknown"
	}
	return "undecided"
}

// asPermitStates returns what Release returns for what the inside returned.
func asPermitStates(found []semaphore.State, err error) ([]PermitState, error) {
	var states []PermitState
	for _, each := range found {
		states = append(states, PermitState(each))
	}
	return states, err
}

// PermitHolder is a permit that is held.
type PermitHolder struct {
	ID          string        // as [Permit.ID] returns it
	Label, Note string        // of its client, and of the permit, or "": see [Holder]
	Lease       time.Duration // the rest of its lease, NoExpiry if it does not end
}

// asPermitHolders returns what Holders returns for what the inside returned.
func asPermitHolders(found []semaphore.Holder, err error) ([]PermitHolder, error) {
	var holders []PermitHolder
	for _, h := range found {
		holders = append(holders, PermitHolder(h))
	}
	return holders, err
}
