package latchkey

import (
	"context"
	"iter"
	"strings"
)

// Object is one lock, semaphore, latch or barrier as it was at one moment. It may be of this library,
// Redisson, or another library whose locks are mutexes.
type Object struct {
	// Inspection is the name, the kind, who holds it, and the time until its key expires.
	//
	// The key does not tell everything. KindLock is a re-entrant, fenced, spin or fair lock, or the lock of an
	// election; a Token other than 0 means that it was fenced at some time. KindSemaphore is that of NewSemaphore, of
	// NewPermitSemaphore or of NewFairSemaphore. KindNumber is a semaphore or a latch that Redisson made,
	// a semaphore of NewPermitSemaphore of which no permit is acquired, or a counter of an application. KindMutex with a token that [ParseOwner] refuses is a lock of
	// another library, or data of an application that looks like one.
	//
	// Of a lock that more than 64 owners hold, Holders are some of them. Of a semaphore and a latch
	// there are none. Name is "" if Options.NameMapper is set, which does not tell the name of a key.
	Inspection

	// HolderCount is how many owners hold a lock, or how many permits of a semaphore are acquired.
	// A lock with more than 64 owners counts an owner that has guests several times.
	HolderCount int

	// Queued is how many owners wait in the queues on the server, or how many parties wait at a barrier. A
	// fair lock, a fair semaphore and the write side queue each owner. Any other lock queues each client of this library once,
	// for all its goroutines. An owner that has died counts until others notice, usually within a minute.
	Queued int
	// Listeners is how many clients listen for a release, or for the end of a latch. Those of Redisson do
	// while they wait, for whatever object. Those of this library do for semaphores, read/write locks and
	// latches, and for other locks beside strangers; they go on for some seconds after the
	// last wait. In a cluster without sharded messages, only those on the same node are counted.
	Listeners int

	// Available is how many permits of a semaphore can be acquired, negative if it is a debt.
	Available int
	// Total is how many permits a semaphore has: Available, and those that are acquired. A barrier has
	// as many parties; 0 means that nobody has come since a Reset.
	Total int
	// Count is how often a latch has to be counted down yet, or how many parties a barrier waits
	// for. Of KindNumber it is the number.
	Count int64
}

// Waiters is how many wait for the object, as far as the server knows: Queued or Listeners, whichever is
// more, since a client may do both. It is an estimate. More wait if goroutines stand behind the first of their
// client. Fewer wait if a client still listens after its wait. [Client.Waiters] tells who stands in queues.
func (o Object) Waiters() int { return max(o.Queued, o.Listeners) }

// Objects walks all objects whose names match a pattern: locks that are held, semaphores, latches
// that are closed, and barriers for ten minutes after their last generation. An election is the lock of its leader. In a pattern * stands for any text, ? for any character, [a-c] for one of several,
// [^a] for any other; \ takes the meaning from the next character, which [QuotePattern] does for
// a whole text. KeyPrefix is put in front; with Options.NameMapper the pattern is for keys. A key beside
// an object, such as its queue, is part of it. Other data is left out, but see [Object] for what
// looks the same. A free lock has no key, and so is not an object; the same holds for an open latch.
//
// The walk asks the server for pieces of its keys (SCAN), and then looks at what matches: two round trips for
// each piece of about 500 keys, whether they match or not, and one more for the labels of the holders in it. In a cluster it visits every
// master. It blocks other commands for no longer than a look at 64 objects takes, and keeps one piece in memory.
//
// The guarantees are those of SCAN. An object that is there from the beginning to the end is
// yielded at least once; it may be yielded several times, so remember the Key if that matters. One that
// comes or goes meanwhile may be yielded or not; one that is gone when it is looked at is not. Each Object is of one
// moment, and all together are not. If the server is replaced meanwhile, or slots of a cluster have
// moved, what may have been missed is walked again. Two cases are not
// noticed: a server that is replaced between two pieces under a client that [New] borrowed, and a key in a
// cluster slot that moves at that moment.
//
// An error ends the walk, and comes with a zero Object. It matches ErrInvalid for a pattern that is empty or
// longer than MaxNameLength (nothing was sent), ErrUnavailable if a server could not be asked for
// Options.RetryBudget or until ctx ended, ErrClosed, or is a *rueidis.RedisError if the server
// refuses: SCAN needs a permission of its own. Close waits for
// the request under way, not for the whole walk.
func (c *Client) Objects(ctx context.Context, pattern string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if pattern == "" || len(pattern) > MaxNameLength {
			yield(Object{}, fail("objects", pattern, invalid("the pattern has %d bytes, not 1 to %d", len(pattern), MaxNameLength)))
			return
		}
		w := walk{client: c, pattern: pattern, yield: yield}
		if c.options.NameMapper == nil {
			w.pattern = QuotePattern(c.options.KeyPrefix) + pattern
		}
		if err := w.all(ctx); err != nil && !w.stopped {
			yield(Object{}, fail("objects", pattern, err))
		}
	}
}

// Object looks at one name as [Client.Objects] does, in one round trip, and one more
// for the labels of holders. If no object is there, the kind is
// KindNone, also if the key holds other data, which Inspect describes. The errors are those of [Client.Inspect].
func (c *Client) Object(ctx context.Context, name string) (Object, error) {
	names, err := c.options.keysOf(name)
	if err != nil {
		return Object{}, fail("object", name, err)
	}
	if !c.begin() {
		return Object{}, fail("object", name, ErrClosed)
	}
	defer c.working.Done()
	o, err := c.lookOnce(ctx, names)
	if err != nil {
		return Object{}, fail("object", name, err)
	}
	c.describeHolders(ctx, o.Holders)
	return o, nil
}

var patternQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// QuotePattern returns the pattern for [Client.Objects] that matches text and nothing else.
func QuotePattern(text string) string { return patternQuoter.Replace(text) }
