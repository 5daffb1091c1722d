package script

import (
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Explain puts the matching sentinel in front of the error of an acquisition. A server
// that refuses for good must not look like contention.
func Explain(err error) []error {
	switch {
	case errors.Is(err, fault.ErrNotAcquired), errors.Is(err, fault.ErrUnavailable):
		return []error{err}
	case fault.IsContextEnd(err):
		return []error{outcome.Unavailable(err)}
	case outcome.HasCode(err, "LATCHKEY_UPGRADE"):
		return []error{fault.ErrUpgrade}
	case outcome.HasCode(err, "LATCHKEY_GONE"):
		return []error{fault.ErrNotAcquired, fault.ErrLost}
	case outcome.HasCode(err, "LATCHKEY_UNSET"):
		return []error{fault.ErrNoPermits}
	case IsFinal(err):
		return []error{err}
	}
	return []error{outcome.Unavailable(err)}
}

// IsToBeUndone reports whether err is why an acquisition is undone that the server has executed,
// wholly or in part.
func IsToBeUndone(err error) bool {
	return errors.Is(err, fault.ErrNotReplicated) || outcome.StoppedHalfWay(err)
}

// IsFinal reports whether an error is final: neither waiting nor another attempt can
// change it.
func IsFinal(err error) bool {
	for _, final := range []error{fault.ErrClosed, fault.ErrInvalid, fault.ErrWrongKind, fault.ErrUpgrade} {
		if errors.Is(err, final) {
			return true
		}
	}
	return outcome.Classify(err) == outcome.Refused
}

// Returned returns the error of a command as a call that ends with it returns it, in the errors of
// the library.
func Returned(err error) error {
	if err == nil {
		return nil
	}
	returned := Explain(err)
	if len(returned) == 1 {
		return returned[0]
	}
	return errors.Join(returned...)
}

// Divisible reports whether parts of a batch may succeed where the whole did not: a proxy, or a
// rule about one of the keys, may have refused it, or the keys are on two nodes because their slot
// migrates.
func Divisible(err error) bool {
	return outcome.HasCode(err, "TRYAGAIN") || outcome.Declined(err) && !errors.Is(err, fault.ErrNotReplicated)
}

// AwaitsSet makes the refusal that nobody has set the value yet an error to wait for.
func AwaitsSet(err error) error {
	if outcome.HasCode(err, "LATCHKEY_UNSET") {
		return fault.ErrNotSetYet
	}
	return err
}
