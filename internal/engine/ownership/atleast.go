package ownership

import (
	"time"
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
