package transport

import "errors"

// Errors that the public package makes its own, under the same names: their contracts stand
// there. The first three say what has come of a call. An error of that kind as the cause of a
// context does not answer the call that the context ends, and is not matched there.
var (
	ErrNotAcquired    = errors.New("latchkey: not acquired")
	ErrUnavailable    = errors.New("latchkey: server unavailable")
	ErrUnknownOutcome = errors.New("latchkey: outcome unknown")
	ErrNotReplicated  = errors.New("latchkey: too few replicas")
	ErrClosed         = errors.New("latchkey: client closed")
)
