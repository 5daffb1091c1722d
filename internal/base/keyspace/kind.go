package keyspace

// Kind names a kind of object.
type Kind string

// The kinds of objects, of holds and of what an inspection finds.
const (
	KindNone     Kind = "none"     // nothing: the lock is free
	KindMutex    Kind = "mutex"    // the plain lock of NewMutex and many other libraries
	KindLock     Kind = "lock"     // re-entrant lock
	KindFenced   Kind = "fenced"   // re-entrant lock with fencing tokens
	KindSpin     Kind = "spin"     // re-entrant lock whose waiters poll
	KindFair     Kind = "fair"     // re-entrant lock, first come first served
	KindRead     Kind = "read"     // the read side of a read/write lock
	KindWrite    Kind = "write"    // its write side
	KindRWLock   Kind = "rwlock"   // read/write lock
	KindPermit   Kind = "permit"   // a permit of a semaphore that has leases
	KindMulti    Kind = "multi"    // several locks, all of them
	KindRed      Kind = "red"      // several locks, a majority of them
	KindElection Kind = "election" // the leadership of an election; its key alone looks like a lock
	KindBarrier  Kind = "barrier"  // parties that wait for each other
	KindOnce     Kind = "once"     // work that succeeds once, and its result
	KindRate     Kind = "rate"     // a rate limiter
	KindUnknown  Kind = "unknown"  // nothing that this package knows

	// KindFairPermit is a permit of a fair semaphore; its key alone looks like a semaphore.
	KindFairPermit Kind = "fairpermit"

	// A semaphore and a latch are numbers in Redis. Other keys of this library show which one it
	// is; without them the number may also be a counter of an application.
	KindSemaphore Kind = "semaphore"
	KindLatch     Kind = "latch"
	KindNumber    Kind = "number"
)

// Noun returns a kind in words, for errors and for people, or "" for one that has none.
func Noun(kind Kind) string { return nouns[kind] }

var nouns = map[Kind]string{
	KindMutex: "a mutex", KindLock: "a lock", KindRWLock: "a read/write lock", KindElection: "an election",
	KindSemaphore: "a semaphore", KindLatch: "a latch", KindBarrier: "a barrier",
	KindOnce: "a Once", KindRate: "a rate limiter", KindNumber: "a number (a semaphore, a latch or a counter)",
}
