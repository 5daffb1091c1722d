package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// The errors of this package. Every error of an operation matches one of them under [errors.Is], or
// is an error of Redis that no retry can remove (out of memory, no permission …), which [errors.As]
// finds as a *rueidis.RedisError. The underlying errors, such as those of the network or of the
// context, always stay in the chain.
//
// The exception is a call whose context has ended before: it sends nothing, and its error matches
// only that of the context, and its cause. Calls that clean up, such as Unlock, work all the same.
var (
	// ErrNotAcquired means that another owner has the lock: it was busy when the call tried it, or
	// until the context ended or the time of [Wait] was over. From a [Barrier] it means that not
	// all parties had arrived by then, from a [RateLimiter] that its turn had not come, or would
	// come too late. The caller holds nothing. No error matches both
	// ErrNotAcquired and ErrUnavailable.
	ErrNotAcquired = fault.ErrNotAcquired

	// ErrUnavailable means that the server could not be reached, did not answer in time, or cannot
	// answer at present because it loads its data, fails over, or moves the slot of the key. The
	// last attempt decides: if a lock was busy at first and the server is gone at the end, the
	// error is ErrUnavailable. If a request was sent and got no answer, ErrUnknownOutcome matches
	// too. Try again later.
	ErrUnavailable = fault.ErrUnavailable

	// ErrNotHeld means that the hold is over: it was released before, it was lost (ErrLost matches
	// too), or its client was closed (ErrClosed matches too). No other hold was affected.
	ErrNotHeld = fault.ErrNotHeld

	// ErrLost is the cause with which the contexts of a hold end when the hold could not be kept:
	// its lease ran out, it was force-unlocked, the key vanished, or the server was silent for the
	// whole lease.
	ErrLost = fault.ErrLost

	// ErrMaxHold is the cause with which the contexts of a hold end when the limit set by [MaxHold]
	// is reached. It also matches ErrLost. From [Hold.Extend] it means that the extension would
	// pass the limit; the hold goes on. [Hold.Err] tells the two apart.
	ErrMaxHold = fault.ErrMaxHold

	// ErrClosed means that the client is closed. Holds that were live at that time were released,
	// and their contexts end with this cause.
	ErrClosed = fault.ErrClosed

	// ErrUnknownOutcome means that a command may or may not have been executed, because no answer
	// came, or, from Unlock, that the release could not be sent yet. The client undoes a failed
	// acquisition in the background, and repeats a failed release there. If it cannot reach the
	// server, the hold ends with its lease.
	ErrUnknownOutcome = fault.ErrUnknownOutcome

	// ErrNotReplicated means that fewer replicas than [Options.Replicas] requires confirmed an
	// acquisition in time. It was undone, or, if the master did not answer the undo
	// (ErrUnknownOutcome matches too), is being undone in the background. The caller holds nothing,
	// or, after a re-entry, no more than before.
	ErrNotReplicated = fault.ErrNotReplicated

	// ErrUpgrade means that a reader tried to acquire the write lock, and would wait for itself.
	ErrUpgrade = fault.ErrUpgrade

	// ErrNotSet means that the semaphore or latch does not exist: nobody has set its permits or its
	// count.
	ErrNotSet = fault.ErrNotSet

	// ErrGone means that the latch was deleted or its TTL ended before it opened, or that the
	// server has lost it.
	ErrGone = fault.ErrGone

	// ErrBroken means that a generation of a [Barrier] ended before all parties had arrived. The
	// text says why. The next Await, of any party, belongs to the next generation.
	ErrBroken = fault.ErrBroken

	// ErrWrongKind means that the key belongs to another kind of object, or holds data of an
	// application. Nothing was changed. The text says what the key is.
	ErrWrongKind = fault.ErrWrongKind

	// ErrInvalid means that an argument is unusable: a bad name, a lease that is zero, negative or
	// below a millisecond, or settings that contradict each other. The call acquires and changes
	// nothing. It also sends nothing, except where only the servers can tell: two members of
	// [NewRedLock] on one server, a cluster behind a client with LazyConnect, or the hold of
	// another member of a [MultiLock].
	ErrInvalid = fault.ErrInvalid
)
