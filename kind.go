package latchkey

import "github.com/latchkey-go/latchkey/internal/base/keyspace"

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
