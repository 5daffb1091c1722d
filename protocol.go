package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// protocol defines how a kind of lock is stored in Redis: the scripts that release and renew it, and their
// arguments for an ownership. Every call is safe to send twice, because counts are absolute.
type protocol interface {
	// releaseCall lowers the count of the ownership; with 0 the ownership is removed from Redis. The arguments
	// are appended to args.
	releaseCall(o *ownership, to release, args []string) script.Call
	// renewalCall returns one ownership's part of a batch of renewals.
	renewalCall(o *ownership, lease time.Duration) script.Call
}

// release is what a release leaves.
type release struct {
	count int           // holds of the ownership
	raise time.Duration // if there are any: the remaining time of the lock at least
	// keep is for how long the lock stays taken if nobody holds it any more. If it is not 0, it is the last
	// argument of the call.
	keep time.Duration
}
