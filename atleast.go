package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// A lock with [AtLeast] stays taken for a minimum time. Its first lease is at least as long, in case the
// holder crashes. A release before that time replaces the owner by one that ends with ":kept", and expires when the
// time is over. Nothing can acquire as that owner, so nothing can enter the lock by the former owner.

// checkAtLeast refuses the option for a lock that cannot stay taken, and for the lock of an election, which
// must go to the next candidate at once.
func (p *primitive) checkAtLeast() error {
	if !p.spec.isLock() || p.spec.side == keyspace.KindRead || p.spec.public {
		return errNoAtLeast
	}
	return nil
}

var errNoAtLeast = fault.Invalid("AtLeast does not apply to read locks, MultiLocks, RedLocks and elections")

// keptAfter is how long the lock stays taken after a release that leaves count holds. Before the ownership
// has begun, it is called only with o.mu held.
func (o *ownership) keptAfter(count int) time.Duration {
	if count > 0 {
		return 0
	}
	return o.keptUntil.KeptFor(o.lock.client.Clock())
}

// keptIfLost is until when the lock stays taken although the ownership is over, or nil: if it was lost before
// the server confirmed a release. An acquisition that is executed late after a release is undone completely.
func (o *ownership) keptIfLost() *lease.Bound {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holds.cause == nil {
		return nil
	}
	return o.keptUntil
}
