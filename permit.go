package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// Permit is a permit of a [PermitSemaphore] that this process has acquired. Its methods may be called from any
// goroutine. A nil Permit behaves like one that was released.
type Permit hold.Handle

// handle returns the hold as the inside of the library sees it.
func (p *Permit) handle() *hold.Handle { return (*hold.Handle)(p) }

// ID returns the id of the permit, in the hexadecimal digits that Redisson uses. Anybody who has the id can
// release the permit.
func (p *Permit) ID() string {
	return p.handle().Owner().String()
}

// Release releases the permit, and wakes a waiter. It works even if ctx has ended: only the values of ctx are
// used, and the time is bounded by Options.RetryBudget instead.
//
// A nil error means that the permit was held until this call, and is over now. ErrNotHeld means that it was
// over before: released already, or lost (then ErrLost matches too). Any other error means that no answer came
// (ErrUnknownOutcome), that the server could not be reached (ErrUnavailable) or that it refused. The
// client then stops renewing the permit and repeats the release in the background until the lease ends; you may
// call Release again to wait for it.
func (p *Permit) Release(ctx context.Context) error { return p.handle().Unlock(ctx) }

// Context returns a context for the work under the permit. It ends with parent, with the loss of the permit
// ([context.Cause] then matches ErrLost, and also ErrMaxHold if that was the reason), with the client
// (ErrClosed), and when Release begins (ErrNotHeld). It ends at the latest when the server could give the
// permit to another process. Context sends nothing. [PermitFrom] finds the permit in the context and in
// contexts derived from it.
func (p *Permit) Context(parent context.Context) context.Context { return p.handle().Context(parent) }

// Lost returns a channel that closes when the permit is lost, at the latest when its lease
// could run out on the server. It does not close on Release.
func (p *Permit) Lost() <-chan struct{} { return p.handle().Lost() }

// Err returns nil while the permit is held, and afterwards why it is not: ErrNotHeld after Release, or the
// cause of the loss (ErrLost, ErrMaxHold, ErrClosed). It sends nothing.
func (p *Permit) Err() error { return p.handle().Err() }

// ValidFor returns for how long the permit can be relied on if the server never answers again: NoExpiry if neither
// its lease nor, as far as is known, its semaphore ends, 0 when the permit is over. It sends nothing.
func (p *Permit) ValidFor() time.Duration {
	left := p.handle().ValidFor()
	if left > lease.Longest {
		return lease.NoExpiry
	}
	return left
}

// Extend makes the lease at least d from now, once; it never shortens it. Renewal, if the permit has it, goes
// on. d must be from 1 ms to 10 years, else the error is ErrInvalid. The error matches ErrNotHeld if the
// permit is over, and ErrMaxHold if d would pass the limit of [MaxHold]. After another error, such as
// ErrUnavailable, the lease is unchanged or d.
func (p *Permit) Extend(ctx context.Context, d time.Duration) error {
	return p.handle().Extend(ctx, d)
}

// PermitFrom returns the innermost permit under which ctx runs: inside [PermitSemaphore.Do] it returns the
// permit, and with it the id. It sends nothing, and also returns a permit that is over. It returns nil if ctx
// runs under no permit; a nil Permit behaves like one that was released.
func PermitFrom(ctx context.Context) *Permit { return (*Permit)(semaphore.Innermost(ctx)) }
