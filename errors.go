package latchkey

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// The errors of this package. The set is closed: every error that an operation on a lock, a
// semaphore, a latch or a barrier returns matches one of them under [errors.Is], or is an error of
// Redis that no retry can remove (out of memory, no permission …), which [errors.As] finds as a
// *rueidis.RedisError. The underlying errors, such as those of the network or of the context,
// always stay in the chain.
//
// The exception is a call whose context has ended before: it sends nothing, and its error matches
// only that of the context, and its cause. Calls that clean up, such as Unlock, work all the same.
var (
	// ErrNotAcquired means that another owner has the lock: it was busy when the call tried it, or
	// until the context ended (the error then also matches the context's error) or the time of
	// [Wait] was over. With [AwaitSet] it may mean that nobody has set the object (ErrNotSet
	// matches too). From a [Barrier] it means that not all parties had arrived by then. From a
	// [RedLock] it means that other owners held enough members to prevent a majority. The caller
	// holds nothing. No error matches both ErrNotAcquired and ErrUnavailable.
	ErrNotAcquired = transport.ErrNotAcquired

	// ErrUnavailable means that the server could not be reached, did not answer in time, or cannot
	// answer at present because it loads its data, fails over, or moves the slot of the key. The
	// last attempt decides: if a lock was busy at first and the server is gone at the end, the
	// error is ErrUnavailable. If the context ended, its error matches too. If a request was sent
	// and got no answer, ErrUnknownOutcome matches too. Try again later.
	ErrUnavailable = transport.ErrUnavailable

	// ErrNotHeld means that the hold is over: it was released before, it was lost (ErrLost matches
	// too), or its client was closed (ErrClosed matches too). No other hold was affected.
	ErrNotHeld = errors.New("latchkey: not held")

	// ErrLost is the cause with which the contexts of a hold end when the hold could not be kept:
	// its lease ran out, it was force-unlocked, the key vanished, or the server was silent for the
	// whole lease.
	ErrLost = errors.New("latchkey: hold lost")

	// ErrMaxHold is the cause with which the contexts of a hold end when the limit set by [MaxHold]
	// is reached. It also matches ErrLost. From [Hold.Extend] it means that the extension would
	// pass the limit; the hold goes on. [Hold.Err] tells the two apart.
	ErrMaxHold = sub("latchkey: maximum hold time reached", ErrLost)

	// ErrClosed means that the client is closed. Holds that were live at that time
	// were released, and their contexts end with this cause.
	ErrClosed = transport.ErrClosed

	// ErrUnknownOutcome means that a command may or may not have been executed, because no answer
	// came. A call that waits may get an answer later, and then returns it together with
	// ErrNotAcquired. From Unlock it can also mean that the release could not be sent yet. The client undoes
	// a failed acquisition in the background, and repeats a failed release there. If it cannot
	// reach the server, the hold ends with its lease.
	ErrUnknownOutcome = transport.ErrUnknownOutcome

	// ErrNotReplicated means that fewer replicas than [Options.Replicas] requires confirmed an
	// acquisition in time. The acquisition was undone, or, if the master did not answer the undo
	// (ErrUnknownOutcome matches too), is being undone in the background. The caller holds nothing,
	// or, after a re-entry, no more than before.
	ErrNotReplicated = transport.ErrNotReplicated

	// ErrUpgrade means that a reader tried to acquire the write lock, and would wait for itself.
	ErrUpgrade = errors.New("latchkey: read lock cannot be upgraded")

	// ErrNotSet means that the semaphore or latch does not exist: nobody has set its permits or its
	// count.
	ErrNotSet = errors.New("latchkey: not set")

	// ErrGone means that the latch was deleted or its TTL ended before it opened, or that the
	// server has lost it.
	ErrGone = errors.New("latchkey: latch gone")

	// ErrBroken means that a generation of a [Barrier] ended before all parties had arrived. The
	// text says why: a party crashed, gave up or ran out of time, its client was closed, somebody
	// reset the barrier, or the server has lost it. The next Await, of any party, belongs to the
	// next generation.
	ErrBroken = errors.New("latchkey: barrier broken")

	// ErrWrongKind means that the key belongs to another kind of object, or holds data of an
	// application. Nothing was changed. The text says what the key is.
	ErrWrongKind = errors.New("latchkey: key is another kind of object")

	// ErrInvalid means that an argument is unusable: a bad name, a lease that is zero, negative or
	// below a millisecond, or settings that contradict each other. The call acquires and changes
	// nothing. It also sends nothing, except where only the servers can tell: two members of a
	// [RedLock] on one server, a cluster behind a client with LazyConnect, or the hold of another
	// member of a [MultiLock].
	ErrInvalid = errors.New("latchkey: invalid argument")
)

// subError is a sentinel that also matches a wider one.
type subError struct {
	text   string
	parent error
}

// sub returns a sentinel that also matches parent.
func sub(text string, parent error) error { return &subError{text, parent} }

func (e *subError) Error() string { return e.text }
func (e *subError) Unwrap() error { return e.parent }

// opError says which operation on which lock failed. It matches every error in causes.
type opError struct {
	op, name string
	causes   []error
}

func (e *opError) Error() string {
	var text strings.Builder
	if wrong, is := e.only().(*kindError); is { //nolint:errorlint // the error itself
		return fmt.Sprintf("latchkey: %s: %q is %s", e.op, e.name, wrong.text)
	}
	fmt.Fprintf(&text, "latchkey: %s %q", e.op, e.name)
	for _, cause := range e.causes {
		text.WriteString(": ")
		text.WriteString(oneLine.Replace(cause.Error()))
	}
	return text.String()
}

// only returns the cause if there is exactly one.
func (e *opError) only() error {
	if len(e.causes) == 1 {
		return e.causes[0]
	}
	return nil
}

// oneLine keeps joined errors on one line, and removes the prefix that the outer error has.
var oneLine = strings.NewReplacer("\n", "; ", "latchkey: ", "")

func (e *opError) Unwrap() []error { return e.causes }

// fail builds the error of an operation from its causes, skipping nil ones.
func fail(op, name string, causes ...error) error {
	e := &opError{op: op, name: name}
	for _, cause := range causes {
		if cause != nil {
			e.causes = append(e.causes, cause)
		}
	}
	return e
}

// withVerb returns the error of an operation that the caller knows by another name.
func withVerb(verb string, err error) error {
	var failed *opError
	if errors.As(err, &failed) {
		return fail(verb, failed.name, failed.causes...)
	}
	return err
}

// kindError is ErrWrongKind with a description of the key.
type kindError struct {
	text  string
	cause error // the reply of the server, or nil
}

func (e *kindError) Error() string { return "latchkey: the key is " + e.text }

func (e *kindError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrWrongKind}
	}
	return []error{ErrWrongKind, e.cause}
}

// notA is the error for a key that holds found instead of want.
func notA(want, found string, cause error) error {
	return otherKind(cmp.Or(found, "something else")+", not "+want, cause)
}

// otherKind is ErrWrongKind with a description of the key.
func otherKind(text string, cause error) error { return &kindError{text, cause} }

// invalid builds an ErrInvalid that names the value at fault.
func invalid(format string, args ...any) error {
	for i, arg := range args {
		if d, is := arg.(time.Duration); is {
			args[i] = transport.DurationText(d)
		}
	}
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
