package latchkey

import (
	"context"
	"iter"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
)

// Object is what Redis stored under one name at one moment: an object of this library, a lock, a
// semaphore or a latch of Redisson, or a mutex of another library; or nothing, or other data.
type Object struct {
	// Name is the name as the program gave it. [Client.Objects] leaves it "" if Options.NameMapper
	// is set, because a key cannot be mapped back to its name.
	Name string
	Key  string // as it is in Redis
	// Kind is KindMutex, KindLock, KindRWLock, KindSemaphore, KindLatch, KindBarrier, KindOnce or
	// KindRate; KindNumber for a semaphore or a latch that Redisson made, or a counter of an
	// application; KindNone for a free name; or KindUnknown for other data. A MultiLock has
	// KindMulti or KindRed.
	//
	// KindLock is a re-entrant, fenced, spin or fair lock, or the lock of an election; a Token
	// other than 0 means that it was fenced at some time. KindMutex with a token that [ParseOwner]
	// refuses is a lock of another library, or application data that looks like one.
	Kind Kind
	// What is the kind in words, also of foreign data: "a lock", "a permit semaphore", "a list", "a
	// hash without any lock owner". It is "" for a free name.
	What string
	TTL  time.Duration // until the key expires if nobody renews it: 0 when free, NoExpiry if it does not
	// Holders are the owners that hold a lock, in the order of their texts. Objects lists some of
	// them if there are more than 64, and Inspect if there are more than 20,000. For a Once it is
	// the owner that runs; if there is none, the work is done.
	Holders []Holder
	Token   int64 // the last fencing token issued under the name, 0 if none; of a Once, that of its run

	// HolderCount is how many owners hold a lock, or how many permits of a semaphore are acquired.
	// If Holders lists only some owners, one that has guests counts several times.
	HolderCount int

	// Queued is how many owners wait in the queues on the server, which [Client.Waiters] describes,
	// or how many parties wait at a barrier. An owner that died counts until others notice, usually
	// within a minute.
	Queued int
	// Listeners is how many clients listen for a release, or for the end of a latch: Redisson's
	// while they wait, for every kind of object; those of this library for semaphores, read/write
	// locks and latches, and for some seconds after the last wait. In a cluster without sharded
	// messages, only clients on the same node are counted.
	Listeners int

	// Available is how many permits of a semaphore can be acquired, negative if there is a debt; or
	// how many requests a rate limiter lets through at once, negative if some are reserved.
	Available int
	// Total is how many permits a semaphore has: Available plus those that are acquired. It is 0
	// for a [Semaphore] that Redisson made, because Redisson stores no total. For a barrier it is
	// the number of parties; 0 means that none has arrived since a Reset. For a rate limiter it is
	// the burst.
	Total int
	// Count is how often a latch has yet to be counted down, or how many parties a barrier still
	// waits for. For KindNumber it is the number.
	Count int64

	Rate Rate // of a rate limiter: the rate in force
}

// Locked reports whether the object is a lock that is held. A semaphore, a latch, a barrier, a
// Once, a rate limiter and data of an application are not locked. Don't branch on it; acquire the
// lock.
func (o Object) Locked() bool { return (&inspect.Object{Kind: keyspace.Kind(o.Kind)}).Locked() }

// Waiters estimates how many wait for the object: it is the larger of Queued and Listeners, since a
// client may count in both. More wait if goroutines wait behind others of their client.
// [Client.Waiters] lists the owners in the queues.
func (o Object) Waiters() int { return max(o.Queued, o.Listeners) }

// Holder is an owner that holds a lock.
type Holder struct {
	// Owner is the owner as it is in Redis. For a mutex it is the token; a token that another
	// library made cannot be used with [As].
	Owner Owner
	// Label is the label of the client that made the owner ([Options].Label). It is "" if unknown:
	// for Redisson and other libraries, and briefly for a client that has just started. It tells
	// people where to look, and proves nothing.
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
	KindOnce     Kind = Kind(keyspace.KindOnce)     // work that succeeds once, and its result
	KindRate     Kind = Kind(keyspace.KindRate)     // a rate limiter
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
// server that decides about the object, never from a replica. The answer may be out of date when it
// arrives. A free name and an open latch have the kind [KindNone]. Foreign data is not an error:
// Kind is [KindUnknown], and What says what it is.
//
// Inspect takes one round trip. The labels and notes of other clients take one more command for
// every 64 clients, or, in a cluster, for every client. Those that cannot be read within a second
// are missing.
//
// The error matches ErrUnavailable if the server could not be reached for Options.RetryBudget or
// until ctx ended, ErrClosed, ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if
// the server refuses.
func (c *Client) Inspect(ctx context.Context, name string) (Object, error) {
	return asObject(c.engine().Inspector.Inspect(ctx, c.engine().Config.Names(name), ""))
}

// Objects walks all objects whose names match a pattern: locks that are held, semaphores, latches
// that are closed, each Once, barriers for ten minutes after their last generation, and rate
// limiters for a minute after their bursts have grown back. An election is the lock of its leader.
// Other keys of an object, such as its queue, are part of it, and other data is
// left out; see [Object] for data that looks the same.
//
// In a pattern, * matches any text, ? any character, [a-c] one of several, and [^a] any other; \
// quotes the next character. KeyPrefix is put in front of the pattern; with Options.NameMapper the
// pattern is for keys.
//
// The walk reads all keys of every master in pieces of about 500 (SCAN), with two round trips for
// each piece and one more for labels. It blocks other commands for no longer than a look at 64
// objects takes, and keeps one piece in memory. The first note of another client may be missing for
// five seconds.
//
// The guarantees are those of SCAN. An object that exists during the whole walk is yielded at least
// once, and may be yielded several times; one that appears or disappears during the walk may be
// yielded or not. If the server is replaced during the walk, or slots of a cluster have moved, the
// walk repeats what it may have missed. Two cases go unnoticed: a server that is replaced between
// two pieces under a client that [New] borrowed, and a key in a cluster slot that is moving at that
// time.
//
// An error ends the walk, and comes with a zero Object. It matches ErrInvalid for a pattern that is
// empty or longer than 512 bytes (nothing was sent), ErrUnavailable, ErrClosed, or is a
// *rueidis.RedisError: SCAN needs a permission of its own. If ctx ended between two requests, the
// error matches only that of ctx.
func (c *Client) Objects(ctx context.Context, pattern string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range admin.WalkObjects(ctx, c.engine(), pattern) {
			if !yield(objectOf(o), err) {
				return
			}
		}
	}
}

// ForceUnlock takes the lock of that name from its holders, whatever its kind: see
// [Lock.ForceUnlock].
//
// If the key is something other than a lock, ForceUnlock returns ErrWrongKind and changes nothing.
// The same goes for a string that [ParseOwner] cannot read, since data of an application may look
// like the token of another library's mutex. To remove such a token, use the ForceUnlock of
// [Client.NewMutex].
func (c *Client) ForceUnlock(ctx context.Context, name string) (bool, error) {
	names := c.engine().Config.Names(name)
	return admin.ForceUnlock(ctx, c.engine(), names, nil)
}

// asObject returns what an Inspect returns for what the inside returned.
func asObject(o inspect.Object, err error) (Object, error) { return objectOf(o), err }

// objectOf returns an object as the program sees it.
func objectOf(o inspect.Object) Object {
	var holders []Holder
	for _, h := range o.Holders {
		holders = append(holders, Holder{
			Owner: Owner(h.Owner), Label: h.Label, Note: h.Note, Count: h.Count, Write: h.Write, Kept: h.Kept,
		})
	}
	return Object{
		Name: o.Name, Key: o.Key, Kind: Kind(o.Kind), What: o.What, TTL: o.TTL, Holders: holders, Token: o.Token,
		HolderCount: o.HolderCount, Queued: o.Queued, Listeners: o.Listeners,
		Available: o.Available, Total: o.Total, Count: o.Count, Rate: Rate(o.Rate),
	}
}
