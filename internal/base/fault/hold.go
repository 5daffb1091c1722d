package fault

import "errors"

// NotHeld returns an error that matches ErrNotHeld and the cause of the end of a hold.
func NotHeld(cause error) error {
	if errors.Is(cause, ErrNotHeld) {
		return cause
	}
	return errors.Join(ErrNotHeld, cause)
}

// Unreleased returns the error of a release after the work under the hold has run. It does not
// match ErrUnavailable, which a failed acquisition does: a caller that repeats its work when the
// server is unavailable would do it twice.
func Unreleased(err error) error { return &unreleasedError{err} }

type unreleasedError struct{ err error }

func (e *unreleasedError) Error() string { return e.err.Error() }

// Is matches the causes of the failed release, but never ErrUnavailable.
func (e *unreleasedError) Is(target error) bool {
	return target != ErrUnavailable && errors.Is(e.err, target)
}

// As finds the causes of the failed release.
func (e *unreleasedError) As(target any) bool { return errors.As(e.err, target) }
