package line

import (
	"context"
	"errors"
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// This file tells the errors of a wait apart. A wait may consist of many commands.
// internal/transport/outcome/outcome.go says what the error of one command means.
//
//	when it ends                               what the caller gets
//	-----------------------------------------  --------------------------------------------
//	a try that finds it busy                   ErrNotAcquired
//	the context ends or the wait is over
//	  after an answer that it is busy,         ErrNotAcquired, and the context's error
//	  while this client holds it
//	  after an answer that it is not set       ErrNotAcquired, ErrNotSet, the context's error
//	  after trouble with the server            ErrUnavailable, and as above
//	  before any answer                        ErrUnavailable, and as above
//	  during a query that was sent after       ErrUnavailable, ErrUnknownOutcome, as above;
//	  a busy answer                            in its first CutOff as after that answer
//	  in line behind others of this client     what the call in front would get
//	the client is closed                       ErrClosed
//	the retry budget of a try is over          ErrUnavailable, and as above
//	the answer comes when the lease is over    ErrUnavailable, ErrUnknownOutcome
//	the hold to re-enter is over               ErrNotAcquired, ErrLost
//	the server refuses                         the refusal, alone
//
// The end of Wait is not reported as an error of the context: see fault.ContextError.

// WorthWaiting reports whether an attempt that failed may succeed later.
func WorthWaiting(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, fault.ErrClosed) || errors.Is(err, outcome.ErrClientClosed) {
		return false
	}
	return errors.Is(err, fault.ErrNotAcquired) || outcome.Classify(err) != outcome.Refused
}

// CutOff is how long a query may have been in flight when a wait ends before the server
// counts as silent.
const CutOff = retry.LongPause

// waitEnded is the error of a wait that ended with err. If err says only that the time is
// over, the last answer decides; last is nil if there was none. heldHere says that a hold
// of this client keeps the caller out, and silent that a query has been in flight for longer than
// CutOff.
func waitEnded(err, last error, heldHere, silent bool) error {
	var trouble error // of an earlier attempt, which says more than silence
	if !errors.Is(last, fault.ErrNotAcquired) {
		trouble = last
	}
	switch {
	case err == nil || !fault.IsContextEnd(err):
		return err
	case heldHere:
		return errors.Join(&fault.BusyError{Left: -1, Here: true, Bare: true}, fault.ContextEnd(err))
	case besidesEnd(err):
		if errors.Is(err, trouble) {
			trouble = nil
		}
		return outcome.Unavailable(errors.Join(trouble, err))
	case last == nil, silent:
		return outcome.Unavailable(errors.Join(trouble, outcome.ErrSilent, fault.ContextEnd(err)))
	case trouble == nil:
		if held, is := last.(*fault.BusyError); is { //nolint:errorlint // the error itself
			last = held.Later()
		}
		return errors.Join(last, fault.ContextEnd(err))
	}
	return outcome.Unavailable(errors.Join(trouble, err))
}

// WithContextEnd adds the end of the context to the error of a call.
func WithContextEnd(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || fault.IsContextEnd(err) || errors.Is(err, fault.ErrClosed) {
		return err
	}
	return errors.Join(err, fault.ContextError(ctx))
}

// besidesEnd reports whether an error says more than that the time is over.
func besidesEnd(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it looks at each error in the tree
	case *fault.EndedContextError:
		return false
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), besidesEnd)
	}
	return err != fault.ErrUnavailable && err != outcome.ErrSilent //nolint:errorlint // the leaves
}
