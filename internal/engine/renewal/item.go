package renewal

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Hold is what the watchdog asks of a hold. While it holds its own mutex it calls only those
// methods that lock nothing: Keys, and those of the item.
type Hold interface {
	async.Item
	item() *Item

	// Keys returns the name and the keys of the lock.
	Keys() *keyspace.Keys
	// Batch returns the script that renews the hold, and how many holds the script renews at most.
	Batch() (renew transport.Command, most int)
	// SendMutex returns the mutex under which the commands for the hold are sent.
	SendMutex() *async.FIFOMutex
	// Period returns the time between two renewals.
	Period() time.Duration
	// Awaited reports whether goroutines of this client wait for the hold to end.
	Awaited() bool
	// EndIfOver ends the hold or a re-entry if its time is over, and otherwise plans when the hold
	// is due next.
	EndIfOver()
	// RenewLater plans another renewal soon. err says why the last one failed, or is nil if none
	// was sent.
	RenewLater(err error)

	// The methods below are called while SendMu is locked.

	// NextLease returns the lease that a renewal is to ask for now, or 0 if there is nothing to
	// renew.
	NextLease() time.Duration
	// RenewalPatience returns how long a renewal to that lease waits for its answer if it is sent
	// now.
	RenewalPatience(lease time.Duration) time.Duration
	// RenewalCall returns the part of the hold in a batch of renewals.
	RenewalCall(lease time.Duration) script.Call
	// RenewalCalls returns calls that each renew one of several keys, for a server that refuses to
	// renew them together, or nil. They are sent one after the other, and the hold is renewed if
	// all of them succeed.
	RenewalCalls(lease time.Duration) []script.Call
	// Renewed notes that the server has renewed the hold. result is what the script has returned.
	Renewed(sent lease.Stamp, lease time.Duration, result int64)
	// Gone ends the hold, because the server no longer has it.
	Gone()
}

// Item is what the watchdog keeps for a hold, which embeds it. The mutex of the watchdog guards it.
type Item struct {
	due Due
	at  int // its index among those that the watchdog has planned
}

// Due says when a hold is next due, on the monotonic clock.
type Due struct {
	RenewAt  time.Duration
	Deadline time.Duration // when the hold can no longer be relied on
	VerifyAt time.Duration // when the hold is to be verified if goroutines of this client wait for it
}

// NewItem returns the item of a hold that is not planned yet.
func NewItem() Item { return Item{at: async.NotInHeap} }

func (i *Item) item() *Item { return i }

// DueAt implements [async.Item].
func (i *Item) DueAt() time.Duration { return min(i.due.RenewAt, i.due.Deadline) }

// HeapIndex implements [async.Item].
func (i *Item) HeapIndex() *int { return &i.at }
