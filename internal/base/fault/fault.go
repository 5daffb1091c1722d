// Package fault has the errors that calls return, and their texts.
package fault

import "errors"

// Errors that the public package exports under the same names; their contracts are documented
// there. The first three are outcomes of a call. If such an error is the cause of a context, it
// says nothing about the call that the context ends, and does not match there.
var (
	ErrNotAcquired    = errors.New("latchkey: not acquired")
	ErrUnavailable    = errors.New("latchkey: server unavailable")
	ErrUnknownOutcome = errors.New("latchkey: outcome unknown")
	ErrNotReplicated  = errors.New("latchkey: too few replicas")
	ErrClosed         = errors.New("latchkey: client closed")
	ErrNotHeld        = errors.New("latchkey: not held")
	ErrLost           = errors.New("latchkey: hold lost")
	ErrMaxHold        = Sub("latchkey: hold ended by MaxHold", ErrLost)
	ErrUpgrade        = errors.New("latchkey: read lock cannot be upgraded: release it first")
	ErrNotSet         = errors.New("latchkey: not set")
	ErrNoPermits      = Sub("latchkey: not set: SetPermits sets its permits", ErrNotSet)
	ErrNoTotal        = Sub("latchkey: not set by Latchkey, so its total is unknown: "+
		"use AddPermits, or delete it first", ErrNotSet)
	ErrNoCount   = Sub("latchkey: not set: TrySetCount sets its count", ErrNotSet)
	ErrGone      = errors.New("latchkey: latch gone")
	ErrBroken    = errors.New("latchkey: barrier broken")
	ErrWrongKind = errors.New("latchkey: key is another kind of object")
	ErrInvalid   = errors.New("latchkey: invalid argument")
)
