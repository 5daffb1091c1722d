package acquire

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/queue"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// QueuePlace returns what the attempt says of its place in the queue.
func (a *Acquisition) QueuePlace(round int) queue.Place {
	o, b := a.Ownership, a.Lock.Client.Inbox
	if !a.IsWaiting || !o.Spec.Passes || o.IsGuest {
		return queue.Place{}
	}
	poll, listens := a.pollText(round), false
	if b.InUse() || poll != "" {
		listens = o.WriteEntry(a.Lease, a.Since).Listens()
	}
	if poll != "" && !listens {
		o.Entry.Expect() // the client may listen by the time of a grant
	}
	return o.Entry.TakePlace(listens, poll)
}

// pollText returns the ms after which a poller polls again, or "" if the waiter is none.
func (a *Acquisition) pollText(round int) string {
	switch pause := a.Lock.Spec.Backoff; {
	case pause != nil && round == 0: // most often it gets the lock
		return ""
	case pause != nil:
		return script.MillisText(pause(round))
	}
	return a.Lock.Client.Inbox.PollText(a.Lock.Names.Key, round)
}

// awaitsGrant prepares the wait of an attempt that was refused. It reports whether the server will
// send a message when this client has the lock: the holder of the lock knows the queue, and the
// owner waits there, or will as soon as the server confirms that this client listens.
func (a *Acquisition) awaitsGrant(round int) bool {
	o := a.Ownership
	if o == nil || !o.Spec.Passes || o.IsGuest {
		return false
	}
	mayListen := o.OwnEntry(a.Since).Listen()
	return !a.noQueue && (o.Entry.MayBeQueued() || mayListen && round < pubsub.ConfirmRounds) && !a.ByStranger
}

// takeGrant begins the ownership if a grant has arrived for it and is enough. known is true, once,
// if a release of this client has put the owner into the queue, so that the caller need not query
// the server.
func (a *Acquisition) takeGrant() (begun, known bool) {
	o := a.Ownership
	granted, from, known := o.Entry.TakeGrant()
	if granted == nil {
		return false, known && o.Entry.Listens()
	}
	length := min(a.Lease, granted.Lease) // the grant may be longer than asked for: see WantLease
	if !a.isEnough(length, from) {
		return false, false
	}
	now := o.Client.Clock()
	for each := range a.each {
		term := lease.NewGranted(from, now, length, a.Lease, a.RenewLease, a.Renew)
		each.Begin(&a.Request, term, now, now, granted.Token)
	}
	return true, false
}

// isEnough reports whether the rest of a grant's lease, which began at from, lasts until it is
// renewed. If not, the caller queries the server, which knows that the owner holds the lock.
func (a *Acquisition) isEnough(granted time.Duration, from lease.Stamp) bool {
	c := a.Lock.Client
	if async.IsClosed(c.Closing) {
		return false
	}
	left := granted - lease.Margin(granted) - c.Clock().Since(from)
	least := granted / 2
	if !a.Renew && a.Lease <= granted {
		least = a.Lease * 9 / 10
	}
	return c.Replication == nil && a.MaxHold == 0 && a.AtLeast == 0 && left > least
}
