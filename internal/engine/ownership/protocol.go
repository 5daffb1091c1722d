package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Protocol defines how a kind of lock is stored in Redis: the scripts that release and renew it, and their
// arguments for an ownership. Every call is safe to send twice, because counts are absolute.
type Protocol interface {
	// ReleaseCall lowers the count of the ownership; with 0 the ownership is removed from Redis. The arguments
	// are appended to args.
	ReleaseCall(o *Ownership, to Release, args []string) script.Call
	// RenewalCall returns one ownership's part of a batch of renewals.
	RenewalCall(o *Ownership, lease time.Duration) script.Call
}

// Release is what a release leaves.
type Release struct {
	Count int           // holds of the ownership
	Raise time.Duration // if there are any: the remaining time of the lock at least
	// Keep is for how long the lock stays taken if nobody holds it any more. If it is not 0, it is the last
	// argument of the call.
	Keep time.Duration
}
