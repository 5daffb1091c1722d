package latchkey

import (
	"context"
	"errors"
	"slices"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// This file is where the errors of an acquisition are told apart, which may consist of many
// commands. What the error of one command says is found out in
// internal/transport/outcome.go.
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
// A wait that is over is not told as an error of the context: see transport.ContextError.

// explain puts the sentinel in front that the error of an acquisition stands for. A
// server that refuses for good must not look like contention.
func explain(err error) []error {
	switch {
	case errors.Is(err, ErrNotAcquired), errors.Is(err, ErrUnavailable):
		return []error{err}
	case transport.IsContextEnd(err):
		return []error{transport.Unavailable(err)}
	case transport.HasCode(err, "LATCHKEY_UPGRADE"):
		return []error{ErrUpgrade}
	case transport.HasCode(err, "LATCHKEY_GONE"):
		return []error{ErrNotAcquired, ErrLost}
	case transport.HasCode(err, "LATCHKEY_UNSET"):
		return []error{ErrNotSet}
	case isFinal(err):
		return []error{err}
	}
	return []error{transport.Unavailable(err)}
}

// isFinal reports whether an error says all that there is to say: neither waiting nor
// another attempt can change it.
func isFinal(err error) bool {
	for _, final := range []error{ErrClosed, ErrInvalid, ErrWrongKind, ErrUpgrade} {
		if errors.Is(err, final) {
			return true
		}
	}
	return transport.Classify(err) == transport.Refused
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
	if ctx.Err() != nil || errors.Is(err, ErrClosed) || errors.Is(err, transport.ErrClientClosed) {
		return false
	}
	return errors.Is(err, ErrNotAcquired) || transport.Classify(err) != transport.Refused
}

// cutOff is for how long a question may have been under way when a wait ends, without the
// server being taken for silent.
const cutOff = transport.LongPause

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
	case err == nil || !transport.IsContextEnd(err):
		return err
	case heldHere:
		return errors.Join(&busyError{left: -1, here: true}, transport.ContextEnd(err))
	case besidesEnd(err):
		return transport.Unavailable(errors.Join(trouble, err))
	case last == nil, silent:
		return transport.Unavailable(errors.Join(trouble, transport.ErrSilent, transport.ContextEnd(err)))
	case trouble == nil:
		if held, is := last.(*busyError); is { //nolint:errorlint // the error itself
			last = held.later()
		}
		return errors.Join(last, transport.ContextEnd(err))
	}
	return transport.Unavailable(errors.Join(trouble, err))
}

// withContextEnd adds the end of the context to what has come of a call.
func withContextEnd(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || transport.IsContextEnd(err) || errors.Is(err, ErrClosed) {
		return err
	}
	return errors.Join(err, transport.ContextError(ctx))
}

// besidesEnd reports whether an error says more than that the time is over.
func besidesEnd(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it looks at each error in the tree
	case *transport.EndedContextError:
		return false
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), besidesEnd)
	}
	return err != ErrUnavailable && err != transport.ErrSilent //nolint:errorlint // the leaves
}
