package latchkey

import (
	"context"
	"iter"

	"github.com/latchkey-go/latchkey/internal/primitive/admin"
)

// Object is a snapshot of one lock, semaphore, latch or barrier. It may belong to this library, to Redisson, or
// to another library whose locks are mutexes.
type Object struct {
	// Inspection has the name, the kind, the holders, and the time until the key expires.
	//
	// A key does not always identify its object. KindLock is a re-entrant, fenced, spin or fair lock, or the
	// lock of an election; a Token other than 0 means that it was fenced at some time. KindSemaphore is a
	// semaphore of NewSemaphore, NewPermitSemaphore or NewFairSemaphore. KindNumber is a semaphore or a latch
	// that Redisson made, or a counter of an application. KindMutex with a token that [ParseOwner] refuses is a
	// lock of another library, or application data that looks like one.
	//
	// If more than 64 owners hold a lock, Holders lists some of them. It is empty for a semaphore and a latch.
	// Name is "" if Options.NameMapper is set, because a key cannot be mapped back to its name.
	Inspection

	// HolderCount is how many owners hold a lock, or how many permits of a semaphore are acquired. In a lock
	// with more than 64 owners, an owner that has guests counts several times.
	HolderCount int

	// Queued is how many owners wait in the queues on the server, or how many parties wait at a barrier. Fair
	// locks and fair semaphores queue each owner. Any other lock, the write side of a read/write lock, and any
	// other semaphore queue each client of this library once, for all its goroutines. While a client holds the
	// lock itself, it is not queued: its goroutines then wait in memory only. An owner that died counts until
	// others notice, usually within a minute.
	Queued int
	// Listeners is how many clients listen for a release, or for the end of a latch. Redisson's clients listen
	// while they wait, for every kind of object. Clients of this library listen for semaphores, read/write
	// locks and latches, and for other locks only if clients that bypass the queue, such as Redisson's, use
	// them too. They keep listening for some seconds after the last wait. In a cluster without sharded
	// messages, only clients on the same node are counted.
	Listeners int

	// Available is how many permits of a semaphore can be acquired, negative if there is a debt.
	Available int
	// Total is how many permits a semaphore has: Available plus those that are acquired. For a barrier it is
	// the number of parties; 0 means that none has arrived since a Reset.
	Total int
	// Count is how often a latch has yet to be counted down, or how many parties a barrier still waits for. For
	// KindNumber it is the number.
	Count int64
}

// Waiters estimates how many wait for the object, by what the server knows: it is the larger of Queued and
// Listeners, since a client may count in both. More wait if goroutines wait behind the first of their client, or
// behind a hold of their client.
// Fewer wait if a client still listens after its wait. [Client.Waiters] lists the owners in the queues.
func (o Object) Waiters() int { return max(o.Queued, o.Listeners) }

// Objects walks all objects whose names match a pattern: locks that are held, semaphores, latches that are
// closed, and barriers for ten minutes after their last generation. An election is the lock of its leader. A
// free lock and an open latch have no key, and so are not objects.
//
// In a pattern, * matches any text, ? any character, [a-c] one of several, and [^a] any other; \ quotes the
// next character. KeyPrefix is put in front of the pattern; with
// Options.NameMapper the pattern is for keys. Other keys of an object, such as its queue, are part of it. Other
// data is left out; see [Object] for data that looks the same.
//
// The walk reads the server's keys in pieces (SCAN), and then looks at the matches: two round trips for each
// piece of about 500 keys, whether they match or not, and one more for the labels of the holders in it. In a
// cluster it visits every master. It blocks other commands for no longer than a look at 64 objects takes, and
// keeps one piece in memory.
//
// For five seconds, the client does not read the label of another client again that had no notes. So the first
// note of a client may be missing for that long, unless [Client.Inspect] or [Client.Object] has read it.
//
// The guarantees are those of SCAN. An object that exists during the whole walk is yielded at least once; it
// may be yielded several times, so remember the Key if that matters. An object that appears or disappears
// during the walk may be yielded or not; one that is gone when the walk looks at it is not. Each Object is a
// snapshot; all of them together are not. If the server is replaced during the walk, or slots of a cluster have
// moved, the walk repeats what it may have missed. Two cases go unnoticed: a server that is replaced between
// two pieces under a client that [New] borrowed, and a key in a cluster slot that is moving at that time.
//
// An error ends the walk, and comes with a zero Object. It matches ErrInvalid for a pattern that is empty or
// longer than 512 bytes (nothing was sent), ErrUnavailable if a server could not be reached for
// Options.RetryBudget or until ctx ended, ErrClosed, or is a *rueidis.RedisError if the server refuses: SCAN
// needs a permission of its own. If ctx ended between two requests, the error matches only that of ctx. Close
// waits for the request in flight, not for the whole walk.
func (c *Client) Objects(ctx context.Context, pattern string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range admin.WalkObjects(ctx, c.engine(), pattern) {
			if !yield(objectOf(o), err) {
				return
			}
		}
	}
}

// Object looks at one name as [Client.Objects] does, in one round trip, and one more for the labels of holders.
// If there is no such object, the kind is KindNone, even if the key holds other data, which Inspect describes.
// The errors are those of [Client.Inspect].
func (c *Client) Object(ctx context.Context, name string) (Object, error) {
	o, err := admin.LookAtName(ctx, c.engine(), name)
	return objectOf(o), err
}

// objectOf returns an object as the program sees it.
func objectOf(o admin.Object) Object {
	return Object{
		Inspection: inspectionOf(o.Inspection), HolderCount: o.HolderCount, Queued: o.Queued, Listeners: o.Listeners,
		Available: o.Available, Total: o.Total, Count: o.Count,
	}
}
