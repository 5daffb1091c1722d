package latchkeyotel

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey"
)

// The values of latchkey.outcome. How calls, attempts and renewals end:
const (
	OutcomeAcquired      = "acquired"
	OutcomeOpened        = "opened" // of the Await of a latch
	OutcomeRenewed       = "renewed"
	OutcomeNotAcquired   = "not_acquired"   // [latchkey.ErrNotAcquired]: somebody else has it
	OutcomeUnavailable   = "unavailable"    // [latchkey.ErrUnavailable], [latchkey.ErrUnknownOutcome]
	OutcomeCanceled      = "canceled"       // the caller ended its context, whatever the server said until then
	OutcomeNotReplicated = "not_replicated" // [latchkey.ErrNotReplicated]
	OutcomeNotSet        = "not_set"        // [latchkey.ErrNotSet]
	OutcomeGone          = "gone"           // [latchkey.ErrGone]
	OutcomeWrongKind     = "wrong_kind"     // [latchkey.ErrWrongKind]
	OutcomeUpgrade       = "upgrade"        // [latchkey.ErrUpgrade]
	OutcomeInvalid       = "invalid"        // [latchkey.ErrInvalid]
	OutcomeRefused       = "refused"        // any other error: the server refuses
)

// How holds end:
const (
	OutcomeReleased = "released"
	OutcomeLost     = "lost"     // [latchkey.ErrLost]
	OutcomeMaxHold  = "max_hold" // [latchkey.ErrMaxHold]
	OutcomeClosed   = "closed"   // [latchkey.ErrClosed]; of calls too
)

// outcomes are errors and what they stand for. The first that matches decides: one that says more stands
// before one that says less.
var outcomes = []struct {
	err     error
	outcome string
}{
	{latchkey.ErrClosed, OutcomeClosed},
	{context.Canceled, OutcomeCanceled},
	{latchkey.ErrNotReplicated, OutcomeNotReplicated},
	{latchkey.ErrNotSet, OutcomeNotSet},
	{latchkey.ErrGone, OutcomeGone},
	{latchkey.ErrWrongKind, OutcomeWrongKind},
	{latchkey.ErrUpgrade, OutcomeUpgrade},
	{latchkey.ErrMaxHold, OutcomeMaxHold},
	{latchkey.ErrLost, OutcomeLost}, // of a call: the hold that it was to enter again
	{latchkey.ErrUnavailable, OutcomeUnavailable},
	{latchkey.ErrUnknownOutcome, OutcomeUnavailable},
	{latchkey.ErrNotAcquired, OutcomeNotAcquired},
	{latchkey.ErrInvalid, OutcomeInvalid},
}

// failure is the outcome that an error stands for.
func failure(err error) string {
	for _, each := range outcomes {
		if errors.Is(err, each.err) {
			return each.outcome
		}
	}
	return OutcomeRefused
}

// outcomeOf is the outcome of an event: success, or what its error stands for.
func outcomeOf(e latchkey.Event, success string) string {
	if e.Err == nil {
		return success
	}
	return failure(e.Err)
}

// isOrdinary reports whether an outcome is ordinary: the caller left, or another owner had the lock.
func isOrdinary(outcome string) bool {
	switch outcome {
	case OutcomeAcquired, OutcomeOpened, OutcomeReleased, OutcomeNotAcquired, OutcomeCanceled, OutcomeClosed:
		return true
	}
	return false
}
