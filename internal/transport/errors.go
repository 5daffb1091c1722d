package transport

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
)
