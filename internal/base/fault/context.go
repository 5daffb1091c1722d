package fault

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// ContextError returns the error of a context that has ended. It matches the error of the context,
// and the cause unless that is an outcome of a call. If the time of a wait is over, it matches
// neither.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if over, is := cause.(*waitOverError); is { //nolint:errorlint // the very cause
		return &EndedContextError{over, nil}
	}
	if cause == nil || errors.Is(err, cause) {
		cause = nil
	}
	return &EndedContextError{err, cause}
}

// EndedContextError is the end of the caller's context. Its cause may be any error, even one of
// this package or of the server, and says nothing about the outcome of the call.
type EndedContextError struct{ err, cause error }

// Error says that the context has ended, and why.
func (e *EndedContextError) Error() string {
	if e.cause == nil {
		return e.err.Error()
	}
	return e.err.Error() + "\n" + e.cause.Error()
}

// Unwrap lets the caller match the end of the context.
func (e *EndedContextError) Unwrap() error { return e.err }

// Is lets the caller match the cause, but never as the outcome of the call.
func (e *EndedContextError) Is(target error) bool {
	switch target {
	case ErrNotAcquired, ErrUnavailable, ErrUnknownOutcome:
		return false
	}
	return errors.Is(e.cause, target)
}

// As finds the cause.
func (e *EndedContextError) As(target any) bool { return e.cause != nil && errors.As(e.cause, target) }

// waitOverError is the cause of the end of a call's context when the time of its wait is over. That
// is not an error of the caller's context.
type waitOverError struct{ wait time.Duration }

func (e *waitOverError) Error() string { return "the wait of " + DurationText(e.wait) + " is over" }

// WithWait returns a context that ends when the wait is over, if not earlier. [IsWaitOver]
// distinguishes that from an end of ctx.
func WithWait(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, wait, &waitOverError{wait})
}

// IsWaitOver reports whether a call ended because the time of its wait was over.
func IsWaitOver(err error) bool {
	var over *waitOverError
	return errors.As(err, &over)
}

// IsContextEnd reports whether the time of the call is over: the caller's context or its wait has
// ended.
func IsContextEnd(err error) bool { return ContextEnd(err) != nil }

// ContextEnd returns the error in the tree of err that ContextError has made, or nil if there is
// none.
func ContextEnd(err error) error {
	if err == nil || err == rueidis.Nil { //nolint:errorlint // most are, unwrapped
		return nil
	}
	var end *EndedContextError
	if errors.As(err, &end) {
		return end
	}
	return nil
}
