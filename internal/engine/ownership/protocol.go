package ownership

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Protocol defines how a kind of lock is stored in Redis: the scripts that release and renew it,
// and their arguments for an ownership. Every call is safe to send twice, because counts are
// absolute.
type Protocol interface {
	// ReleaseCall lowers the count of the ownership; with 0 the ownership is removed from Redis.
	// The arguments are appended to args. [Ownership.ReleaseCall] calls it.
	ReleaseCall(o *Ownership, to Release, args []string) script.Call
	// RenewalCall returns one ownership's part of a batch of renewals.
	RenewalCall(o *Ownership, lease time.Duration) script.Call
}

// Release is what a release leaves, and what it says of the ownership.
type Release struct {
	Count int           // holds of the ownership
	Raise time.Duration // if there are any: the remaining time of the lock at least
	// Keep is for how long the lock stays taken if nobody holds it any more. If it is not 0, it is
	// the last argument of the call. A lock with the option AtLeast stays taken for a minimum time.
	// Its first lease is at least as long, in case the holder crashes. A release before that time
	// replaces the owner by one that ends with ":kept", and expires when the time is over. Nothing
	// can acquire as that owner, so nothing can enter the lock by the former owner.
	Keep time.Duration

	// The fields below are set by [Ownership.ReleaseCall].

	Begun         bool          // the ownership has been held
	MayBeAcquired bool          // an unanswered acquisition may have run, or may still run
	MayWait       bool          // the server may have the ownership among the waiters
	Most          int           // holds that the server may have counted
	Entry         string        // of the owner in the queue, "" if it cannot be there
	Next          string        // the entry with which this client wants the lock after the last hold, or ""
	NextLease     time.Duration // the lease that Next wants
	Open          time.Duration // for how long the release leaves a mutex to other libraries, or 0
}

// MayWaitArg returns MayWait as an argument for scripts.
func (to *Release) MayWaitArg() string {
	if to.MayWait {
		return "1"
	}
	return "0"
}

// QueueArgs appends the arguments that concern the queue.
func (to *Release) QueueArgs(args []string, p *Lock) []string {
	return p.Client.QueueArgs(args, p.Names.Key, to.Entry, to.Next, to.NextLease)
}
