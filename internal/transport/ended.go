package transport

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Unanswered adds ErrUnavailable to the error of a failed connection attempt, unless the
// server refused or the options are invalid.
func Unanswered(err error) error {
	if errors.Is(err, fault.ErrInvalid) || Classify(err) == Refused {
		return err
	}
	return Unavailable(err)
}

// EndedBefore returns the error of a call whose context has ended before it began: that of the context alone,
// since nothing was sent and nothing is known of the server.
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
