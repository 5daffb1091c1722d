package outcome

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Unavailable wraps the reason why the server did not answer in ErrUnavailable, unless it matches
// that already. It never returns nil.
func Unavailable(err error) error {
	switch {
	case err == nil:
		return fault.ErrUnavailable
	case errors.Is(err, fault.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", fault.ErrUnavailable, err)
}

// StoppedAfter returns the error of a call that was stopped while it rested after trouble:
// ErrClosed alone if that is why it was stopped, otherwise an ErrUnavailable that matches both.
func StoppedAfter(before, stopped error) error {
	if errors.Is(stopped, fault.ErrClosed) {
		return stopped
	}
	return Unavailable(errors.Join(before, stopped))
}

// Unanswered adds ErrUnavailable to the error of a failed connection attempt, unless the
// server refused or the options are invalid.
func Unanswered(err error) error {
	if errors.Is(err, fault.ErrInvalid) || Classify(err) == Refused {
		return err
	}
	return Unavailable(err)
}

// EndedBefore returns the error of a call whose context has ended before it began: that of the
// context alone, since nothing was sent and nothing is known of the server.
func EndedBefore(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	err := fault.ContextError(ctx)
	if fault.IsWaitOver(err) { // of a call of which this one is a step
		return Unavailable(err)
	}
	return err
}

// halfMovedError is a reply about a migrating slot, with an explanation.
type halfMovedError struct{ reply error }

func (e *halfMovedError) Error() string {
	return "the cluster slot is being moved, and the server does not look at keys of which some have moved " +
		"and some have not; this works again when the slot has moved: " + e.reply.Error()
}

func (e *halfMovedError) Unwrap() error { return e.reply }

// Explained adds an explanation to a reply of the server if it needs one.
func Explained(err error) error {
	halfMoved := func(r errorReply) bool { return r.code == "TRYAGAIN" || r.class() == halfWayReply }
	if isReply(err, halfMoved) {
		return &halfMovedError{err}
	}
	return err
}
