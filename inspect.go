package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
)

// Inspection is what Redis stored under one name at one moment.
type Inspection struct {
	Name string // as the program gave it
	Key  string // as it is in Redis
	// Kind is KindMutex, KindLock (which re-entrant, fenced and spin locks share) or KindRWLock;
	// KindNone for a free name; KindSemaphore, KindLatch, KindNumber or KindBarrier; or KindUnknown
	// for anything else. Data of an application that looks like the token of a mutex is reported as
	// one.
	Kind Kind
	// What is the kind in words, also of foreign data: "a lock", "a list", "a hash without any lock
	// owner". It is "" for a free name.
	What    string
	TTL     time.Duration // time until the key expires: 0 when free, NoExpiry if it does not
	Holders []Holder      // of a lock, in the order of their owners; empty otherwise
	Token   int64         // the last fencing token issued under the name, 0 if none
}

// Locked reports whether the name is a lock that is held. A semaphore, a latch, a barrier and data
// of an application are not locked.
func (i Inspection) Locked() bool {
	return inspect.Inspection{Kind: keyspace.Kind(i.Kind)}.Locked()
}

// Holder is an owner that holds a lock.
type Holder struct {
	// Owner is the owner as it is in Redis. For a mutex it is the token; a token that another library made
	// cannot be used with [As].
	Owner Owner
	// Label is the label of the client that made the owner ([Options].Label). It is "" if unknown: for Redisson
	// and other libraries, and briefly for a client that has just started. Anybody who may write to the server
	// may write any label: it tells people where to look, and proves nothing.
	Label string
	Note  string // the [Note] of its hold, or ""
	Count int    // how often the owner has entered, starting at 1
	Write bool   // in a read/write lock: it writes; an owner that reads and writes is listed twice
	Kept  bool   // it has released the lock, which stays taken because of [AtLeast]: nobody holds it
}

// Kind names a kind of object.
type Kind keyspace.Kind

// The kinds of objects, of holds and of what [Client.Inspect] finds.
const (
	KindNone     Kind = Kind(keyspace.KindNone)     // nothing: the lock is free
	KindMutex    Kind = Kind(keyspace.KindMutex)    // the plain lock of NewMutex and many other libraries
	KindLock     Kind = Kind(keyspace.KindLock)     // re-entrant lock
	KindFenced   Kind = Kind(keyspace.KindFenced)   // re-entrant lock with fencing tokens
	KindSpin     Kind = Kind(keyspace.KindSpin)     // re-entrant lock whose waiters poll
	KindFair     Kind = Kind(keyspace.KindFair)     // re-entrant lock, first come first served
	KindRead     Kind = Kind(keyspace.KindRead)     // the read side of a read/write lock
	KindWrite    Kind = Kind(keyspace.KindWrite)    // its write side
	KindRWLock   Kind = Kind(keyspace.KindRWLock)   // read/write lock
	KindPermit   Kind = Kind(keyspace.KindPermit)   // a permit of a semaphore that has leases
	KindMulti    Kind = Kind(keyspace.KindMulti)    // several locks, all of them
	KindRed      Kind = Kind(keyspace.KindRed)      // several locks, a majority of them
	KindElection Kind = Kind(keyspace.KindElection) // the leadership of an election; its key alone looks like a lock
	KindBarrier  Kind = Kind(keyspace.KindBarrier)  // parties that wait for each other
	KindUnknown  Kind = Kind(keyspace.KindUnknown)  // nothing that this package knows

	// KindFairPermit is a permit of a fair semaphore; its key alone looks like a semaphore.
	KindFairPermit Kind = Kind(keyspace.KindFairPermit)

	// A semaphore and a latch are numbers in Redis. Other keys of this library show which one it
	// is; without them the number may also be a counter of an application.
	KindSemaphore Kind = Kind(keyspace.KindSemaphore)
	KindLatch     Kind = Kind(keyspace.KindLatch)
	KindNumber    Kind = Kind(keyspace.KindNumber)
)

// Inspect returns what is stored under a name, whatever kind of object it is. It reads from the
// server that decides about the lock, never from a replica. The answer may be out of date when it
// arrives. A free name has the kind [KindNone]. Foreign data is not an error: Kind is
// [KindUnknown], and What says what it is.
//
// If other clients of this library hold the lock, their labels and the notes of their holds take
// one more command for every 64 clients, or, in a cluster, for every client. Those that cannot be
// read within a second are missing.
//
// Inspect repeats the request for Options.RetryBudget while the server is in trouble. The error
// matches ErrUnavailable if the server could not be reached in that time or before ctx ended,
// ErrClosed, ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server
// refuses.
func (c *Client) Inspect(ctx context.Context, name string) (Inspection, error) {
	names := c.engine().Config.Names(name)
	return asInspection(c.engine().Inspector.Inspect(ctx, names, ""))
}

// ForceUnlock takes the lock of that name from its holders, whatever its kind, gives it to a
// waiter, and reports whether it was held. It removes only the holders that it found: a hold that
// begins later is not touched.
//
// If the key is something other than a lock, ForceUnlock returns ErrWrongKind and changes nothing.
// The same goes for a string that [ParseOwner] cannot read, since data of an application may look
// like the token of another library's mutex. To remove such a token, use [Mutex.ForceUnlock].
//
// The former holders are not notified. Those of this library notice at their next renewal, at most
// a third of their lease later, and their holds end with ErrLost. Until then they continue, so two
// owners may be in the critical section. A client may also still pass such a hold on to its own
// goroutines ([Tuning].Turn).
//
// The other errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not
// answered. It may or may not have happened, and you may repeat it.
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	names := c.engine().Config.Names(name)
	return admin.ForceUnlock(ctx, c.engine(), names, nil)
}

// asInspection returns what an Inspect returns for what the inside returned.
func asInspection(i inspect.Inspection, err error) (Inspection, error) { return inspectionOf(i), err }

// inspectionOf returns an inspection as the program sees it.
func inspectionOf(i inspect.Inspection) Inspection {
	var holders []Holder
	for _, h := range i.Holders {
		holders = append(holders, Holder{
			Owner: Owner(h.Owner), Label: h.Label, Note: h.Note, Count: h.Count, Write: h.Write, Kept: h.Kept,
		})
	}
	return Inspection{
		Name: i.Name, Key: i.Key, Kind: Kind(i.Kind), What: i.What, TTL: i.TTL, Holders: holders, Token: i.Token,
	}
}
