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

// WrongKind is the error of a call that needs want under a name that has found.
func WrongKind(want, found string, cause error) error {
	return OtherKind(notWanted(want, found)+": use another name", cause)
}

// NotKind is WrongKind for a call that only looks or removes: another name would not help.
func NotKind(want, found string) error { return OtherKind(notWanted(want, found), nil) }

func notWanted(want, found string) string { return cmp.Or(found, "something else") + ", not " + want }

// OtherKind is ErrWrongKind with a description of the key.
func OtherKind(text string, cause error) error { return &KindError{text, cause} }
