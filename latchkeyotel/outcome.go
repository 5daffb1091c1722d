package latchkeyotel

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey"
)

// The values of latchkey.outcome for calls, attempts and renewals.
const (
	OutcomeAcquired      = "acquired"
	OutcomeOpened        = "opened" // of the Await of a latch
	OutcomeRenewed       = "renewed"
	OutcomeNotAcquired   = "not_acquired"   // [latchkey.ErrNotAcquired]: another owner has it
	OutcomeUnavailable   = "unavailable"    // [latchkey.ErrUnavailable], [latchkey.ErrUnknownOutcome]
	OutcomeCanceled      = "canceled"       // the caller canceled its context, whatever the server answered before
	OutcomeNotReplicated = "not_replicated" // [latchkey.ErrNotReplicated]
	OutcomeNotSet        = "not_set"        // [latchkey.ErrNotSet]
	OutcomeGone          = "gone"           // [latchkey.ErrGone]
	OutcomeWrongKind     = "wrong_kind"     // [latchkey.ErrWrongKind]
	OutcomeUpgrade       = "upgrade"        // [latchkey.ErrUpgrade]
	OutcomeInvalid       = "invalid"        // [latchkey.ErrInvalid]
	OutcomeRefused       = "refused"        // any other error: the server refuses
)

// The values of latchkey.outcome for holds.
const (
	OutcomeReleased = "released"
	OutcomeLost     = "lost"     // [latchkey.ErrLost]
	OutcomeMaxHold  = "max_hold" // [latchkey.ErrMaxHold]
	OutcomeClosed   = "closed"   // [latchkey.ErrClosed]; for calls too
)

// outcomes maps errors to outcomes. The first error that matches decides, so the more specific one
// comes first.
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
	{latchkey.ErrLost, OutcomeLost}, // for a call: it was to re-enter a hold that was lost
	{latchkey.ErrUnavailable, OutcomeUnavailable},
	{latchkey.ErrUnknownOutcome, OutcomeUnavailable},
	{latchkey.ErrNotAcquired, OutcomeNotAcquired},
	{latchkey.ErrInvalid, OutcomeInvalid},
}

// failure returns the outcome of an error.
func failure(err error) string {
	for _, each := range outcomes {
		if errors.Is(err, each.err) {
			return each.outcome
		}
	}
	return OutcomeRefused
}

// outcomeOf returns the outcome of an event: success, or the outcome of its error.
func outcomeOf(e latchkey.Event, success string) string {
	if e.Err == nil {
		return success
	}
	return failure(e.Err)
}

// isOrdinary reports whether an outcome is not an error of a span. Besides success, it is ordinary
// that the caller gives up, or that another owner holds the lock.
func isOrdinary(outcome string) bool {
	switch outcome {
	case OutcomeAcquired, OutcomeOpened, OutcomeReleased, OutcomeNotAcquired, OutcomeCanceled, OutcomeClosed:
		return true
	}
	return false
}
