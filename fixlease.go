package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
)

// fixLease ends the renewal of a permit whose lease is being set. With shorter, while the server has not
// answered, the permit ends after the new lease or the current one, whichever is shorter. Without it, it ends
// after the new lease.
func (o *ownership) fixLease(sent lease.Stamp, lease time.Duration, shorter bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return
	}
	o.holds.stopRenewal(&o.holds.first)
	o.doubt.ExtensionInDoubt(lease)
	if shorter {
		o.lease.Shorten(sent, lease)
	} else {
		o.lease.Set(sent, lease)
	}
	o.plan()
}

// endedBecause says why the first hold is over, or is nil.
func (o *ownership) endedBecause() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.first.errLocked()
}
