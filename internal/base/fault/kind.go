package fault

import (
	"cmp"
)

// KindError is ErrWrongKind with a description of the key.
type KindError struct {
	text  string
	cause error // the reply of the server, or nil
}

// Error says what the key is.
func (e *KindError) Error() string { return "latchkey: the key is " + e.text }

// Unwrap lets the caller match ErrWrongKind, and the reply of the server.
func (e *KindError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrWrongKind}
	}
	return []error{ErrWrongKind, e.cause}
}

// WrongKind is the error for a key that holds found instead of want.
func WrongKind(want, found string, cause error) error {
	return OtherKind(cmp.Or(found, "something else")+", not "+want, cause)
}

// OtherKind is ErrWrongKind with a description of the key.
func OtherKind(text string, cause error) error { return &KindError{text, cause} }
