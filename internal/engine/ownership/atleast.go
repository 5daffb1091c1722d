package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// A lock with the option AtLeast stays taken for a minimum time. Its first lease is at least as long, in case the
// holder crashes. A release before that time replaces the owner by one that ends with ":kept", and expires when the
// time is over. Nothing can acquire as that owner, so nothing can enter the lock by the former owner.

// keptAfter is how long the lock stays taken after a release that leaves count holds. Before the ownership
// has begun, it is called only with o.mu held.
func (o *Ownership) keptAfter(count int) time.Duration {
	if count > 0 {
		return 0
	}
	return o.KeptUntil.KeptFor(o.Lock.Client.Clock())
}

// keptIfLost is until when the lock stays taken although the ownership is over, or nil: if it was lost before
// the server confirmed a release. An acquisition that is executed late after a release is undone completely.
func (o *Ownership) keptIfLost() *lease.Bound {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Holds.Cause == nil {
		return nil
	}
	return o.KeptUntil
}
