package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// FixLease ends the renewal of a permit whose lease is being set. With shorter, while the server has not
// answered, the permit ends after the new lease or the current one, whichever is shorter. Without it, it ends
// after the new lease.
func (o *Ownership) FixLease(sent lease.Stamp, lease time.Duration, shorter bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Phase != Held {
		return
	}
	o.Holds.stopRenewal(&o.Holds.first)
	o.Doubt.ExtensionInDoubt(lease)
	if shorter {
		o.Lease.Shorten(sent, lease)
	} else {
		o.Lease.Set(sent, lease)
	}
	o.plan()
}

// EndedBecause says why the first hold is over, or is nil.
func (o *Ownership) EndedBecause() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Holds.first.errLocked()
}
