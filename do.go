package latchkey

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// do implements Do for every lock.
func do(ctx context.Context, lock member, fn func(context.Context) error, settings []setting) error {
	h, err := lock.acquire(ctx, "lock", true, settings)
	if err != nil {
		return err
	}
	return h.during(ctx, fn)
}

// during calls fn under the hold, and releases the hold.
func (h *Hold) during(ctx context.Context, fn func(context.Context) error) (err error) {
	defer func() {
		lost := h.Err()
		unlocked := h.Unlock(ctx)
		switch {
		case lost != nil:
			if err == lost { //nolint:errorlint // fn returned the cause of its context, and nothing else
				err = nil
			}
			err = errors.Join(err, fault.Op("do", h.Name(), lost))
		case unlocked != nil:
			err = errors.Join(err, &unreleasedError{unlocked})
		}
	}()
	return fn(h.Context(ctx))
}

// unreleasedError is the error of a release after fn has run. It must not match the error
// of an acquisition: a caller that repeats its work when the server is unavailable would
// do it twice.
type unreleasedError struct{ err error }

func (e *unreleasedError) Error() string { return e.err.Error() }

// Is matches the causes of the failed release, but never ErrUnavailable.
func (e *unreleasedError) Is(target error) bool {
	return target != fault.ErrUnavailable && errors.Is(e.err, target)
}

// As finds the causes of the failed release.
func (e *unreleasedError) As(target any) bool { return errors.As(e.err, target) }
