package latchkey

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// errClientClosed means that the rueidis client was found closed before the command was sent.
// A mere ErrClosing does not: whatever is on its way when a connection is closed, by
// its owner or in a failover, gets that too.
var errClientClosed = fmt.Errorf("latchkey: not sent: the rueidis client is closed: %w", rueidis.ErrClosing)

// This file is where errors are told apart. One command of the transport:
//
//	what came                                  outcome    what the caller is told
//	-----------------------------------------  ---------  ---------------------------------
//	a reply, nil included                      answered   no error
//	an error reply that retries cannot mend    refused    that reply, or what its code means
//	too few replicas confirmed                 refused    ErrNotReplicated
//	LOADING, READONLY, MOVED … (temporary)     tryLater   ErrUnavailable
//	not dialed, no room, no node, closed by    notSent    ErrUnavailable
//	the owner of a borrowed client
//	a script stopped half way                  uncertain  ErrUnavailable, ErrUnknownOutcome
//	a broken connection, no answer in time,    uncertain  ErrUnavailable, ErrUnknownOutcome;
//	the end of the caller's context                       the context's error
//
// All but the refused are repeated first, for as long as the call may take. ErrUnknownOutcome
// is for what changes something. An acquisition, which may consist of many commands:
//
//	when it ends                               what the caller is told
//	-----------------------------------------  --------------------------------------------
//	a try that finds it busy                   ErrNotAcquired
//	the context ends or the wait is over
//	  after an answer that it is busy,         ErrNotAcquired, and the context's error
//	  while this client holds it
//	  after an answer that it is not set       ErrNotAcquired, ErrNotSet, the context's error
//	  after trouble with the server            ErrUnavailable, and as above
//	  before any answer                        ErrUnavailable, and as above
//	  during a question that was asked after   ErrUnavailable, ErrUnknownOutcome, as above;
//	  a busy answer                            in its first cutOff as after that answer
//	  in line behind others of this client     as the one in front would be told
//	the client is closed                       ErrClosed
//	the retry budget of a try is over          ErrUnavailable, and as above
//	the answer comes when the lease is over    ErrUnavailable, ErrUnknownOutcome
//	a hold that is to be entered again is over ErrNotAcquired, ErrLost
//	anything refused                           the refusal, alone
//
// A wait that is over is not told as an error of the context: see waitOverError.

// outcome says what an error tells about a command.
type outcome int

const (
	answered  outcome = iota // the server did what the reply says
	refused                  // the server will not do it, now or later
	tryLater                 // the server did not do it, but may soon
	notSent                  // the command never reached a server
	uncertain                // done, not done, or still to be done
)

// temporaryCodes are refusals that a server in trouble gives before it executes
// anything.
var temporaryCodes = []string{
	"LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "BUSY ", "max number of clients",
	"MOVED ", "ASK ", // more often than rueidis follows: the nodes do not agree yet
	"UNBLOCKED", // the master of those who wait for replicas is none any more
}

// stoppedHalfWay is what a script is told that comes to a key which has moved to another
// node, with part of it done.
const stoppedHalfWay = "non local key"

// classify classifies the error of one command. Codes are looked for anywhere in
// the text, because servers differ in what they put in front.
func classify(err error) outcome {
	if err == nil || rueidis.IsRedisNil(err) {
		return answered
	}
	return classifyFailure(err)
}

// classifyFailure is apart because its variables cost an allocation each.
func classifyFailure(err error) outcome {
	var reply *rueidis.RedisError
	var dial *net.OpError
	switch {
	case ofContext(err):
		return uncertain
	case errors.As(err, &reply):
		switch {
		case containsAny(reply.Error(), temporaryCodes):
			return tryLater
		case strings.Contains(reply.Error(), stoppedHalfWay):
			return uncertain
		}
		return refused
	case errors.Is(err, ErrNotReplicated), errors.Is(err, errLazyCluster):
		return refused
	case errors.Is(err, errClientClosed), errors.Is(err, errSlots), errors.Is(err, errUnsent), errors.Is(err, errElsewhere),
		errors.Is(err, rueidis.ErrNoSlot):
		return notSent
	case errors.As(err, &dial) && dial.Op == "dial":
		return notSent
	}
	return uncertain
}

func containsAny(text string, codes []string) bool {
	for _, code := range codes {
		if strings.Contains(text, code) {
			return true
		}
	}
	return false
}

// hasCode reports whether err is a reply of the server with that code in it.
func hasCode(err error, code string) bool {
	if err == nil {
		return false
	}
	return codeIn(err, code)
}

func codeIn(err error, code string) bool {
	var reply *rueidis.RedisError
	return !ofContext(err) && errors.As(err, &reply) && strings.Contains(reply.Error(), code)
}

// halfMovedError is a reply about a slot that migrates, with what it means.
type halfMovedError struct{ reply error }

func (e *halfMovedError) Error() string {
	return "the cluster slot is being moved, and the server does not look at keys of which some have moved " +
		"and some have not; this works again when the slot has moved: " + e.reply.Error()
}

func (e *halfMovedError) Unwrap() error { return e.reply }

// explained adds to a reply of the server what the caller has to know.
func explained(err error) error {
	if hasCode(err, "TRYAGAIN") || hasCode(err, stoppedHalfWay) {
		return &halfMovedError{err}
	}
	return err
}

// unavailable puts ErrUnavailable in front of what kept the server from answering.
func unavailable(err error) error {
	switch {
	case err == nil:
		return ErrUnavailable
	case errors.Is(err, ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// stoppedAfter is the error of a call that was stopped while it rested after trouble.
func stoppedAfter(before, stopped error) error {
	if errors.Is(stopped, ErrClosed) {
		return stopped
	}
	return unavailable(errors.Join(before, stopped))
}

// explain puts the sentinel in front that the error of an acquisition stands for. A
// server that refuses for good is no contention, and is not made to look like it.
func explain(err error) []error {
	switch {
	case errors.Is(err, ErrNotAcquired), errors.Is(err, ErrUnavailable):
		return []error{err}
	case ofContext(err):
		return []error{unavailable(err)}
	case hasCode(err, "LATCHKEY_UPGRADE"):
		return []error{ErrUpgrade}
	case hasCode(err, "LATCHKEY_GONE"):
		return []error{ErrNotAcquired, ErrLost}
	case hasCode(err, "LATCHKEY_UNSET"):
		return []error{ErrNotSet}
	case isFinal(err):
		return []error{err}
	}
	return []error{unavailable(err)}
}

// isFinal reports whether an error says all that there is to say: neither waiting nor
// another attempt can change it.
func isFinal(err error) bool {
	for _, final := range []error{ErrClosed, ErrInvalid, ErrWrongKind, ErrUpgrade} {
		if errors.Is(err, final) {
			return true
		}
	}
	return classify(err) == refused
}

// notEntered is the error of a re-entry into a hold that ended for that cause.
func notEntered(cause error) error {
	if errors.Is(cause, ErrClosed) {
		return ErrClosed
	}
	return errors.Join(ErrNotAcquired, cause)
}

// notHeld is the error of an operation on a hold that is over for that cause.
func notHeld(cause error) error {
	if errors.Is(cause, ErrNotHeld) {
		return cause
	}
	return errors.Join(ErrNotHeld, cause)
}

// worthWaiting reports whether an attempt that failed may succeed later.
func worthWaiting(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, ErrClosed) || errors.Is(err, errClientClosed) {
		return false
	}
	return errors.Is(err, ErrNotAcquired) || classify(err) != refused
}

// cutOff is for how long a question may have been under way when a wait ends, without the
// server being taken for silent.
const cutOff = longPause

// waitEnded is the error of a wait that has ended with err. If that says no more than that
// the time is over, the last answer decides, nil if there was none. heldHere says that this
// client holds what is waited for, and silent that a question has been under way for
// longer than cutOff.
func waitEnded(err, last error, heldHere, silent bool) error {
	var trouble error // of an attempt before, which tells more than silence
	if !errors.Is(last, ErrNotAcquired) {
		trouble = last
	}
	switch {
	case err == nil || !ofContext(err):
		return err
	case heldHere:
		return errors.Join(&busyError{left: -1, here: true}, endOf(err))
	case besidesEnd(err):
		return unavailable(errors.Join(trouble, err))
	case last == nil, silent:
		return unavailable(errors.Join(trouble, errSilent, endOf(err)))
	case trouble == nil:
		if held, is := last.(*busyError); is { //nolint:errorlint // the error itself
			last = held.later()
		}
		return errors.Join(last, endOf(err))
	}
	return unavailable(errors.Join(trouble, err))
}

// withContextEnd adds the end of the context to what has come of a call.
func withContextEnd(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || ofContext(err) || errors.Is(err, ErrClosed) {
		return err
	}
	return errors.Join(err, contextError(ctx))
}

// contextError is the error of a context that ended, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if over, is := cause.(*waitOverError); is { //nolint:errorlint // the very cause
		return &endedContextError{over, nil}
	}
	if cause == nil || errors.Is(err, cause) {
		cause = nil
	}
	return &endedContextError{err, cause}
}

// endedContextError is the end of the caller's context. Its cause may be any error, one of
// this package or of the server included, and is no answer to what was asked.
type endedContextError struct{ err, cause error }

func (e *endedContextError) Error() string {
	if e.cause == nil {
		return e.err.Error()
	}
	return e.err.Error() + "\n" + e.cause.Error()
}

// Unwrap lets the caller match the end of the context.
func (e *endedContextError) Unwrap() error { return e.err }

// Is lets the caller match the cause, but not take it for what has come of the call.
func (e *endedContextError) Is(target error) bool {
	switch target {
	case ErrNotAcquired, ErrUnavailable, ErrUnknownOutcome:
		return false
	}
	return errors.Is(e.cause, target)
}

// As finds the cause.
func (e *endedContextError) As(target any) bool { return e.cause != nil && errors.As(e.cause, target) }

// waitOverError is the cause with which the context of a call ends when the time of [Wait]
// is over, which is no error of the caller's context.
type waitOverError struct{ wait time.Duration }

func (e *waitOverError) Error() string { return "the wait of " + e.wait.String() + " is over" }

// waitOver reports whether a call ended because the time of [Wait] was over.
func waitOver(err error) bool {
	var over *waitOverError
	return errors.As(err, &over)
}

// ofContext reports whether the time of the call is over: the caller's context ended, or
// its wait.
func ofContext(err error) bool { return endOf(err) != nil }

// endOf is the end of the context in an error, or nil.
func endOf(err error) error {
	var end *endedContextError
	if errors.As(err, &end) {
		return end
	}
	return nil
}

// besidesEnd reports whether an error says more than that the time is over.
func besidesEnd(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it looks at each error in the tree
	case *endedContextError:
		return false
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), besidesEnd)
	}
	return err != ErrUnavailable && err != errSilent //nolint:errorlint // the leaves
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
