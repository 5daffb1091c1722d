package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// subError is a sentinel that also matches a wider one.
type subError struct {
	text   string
	parent error
}

// Sub returns a sentinel that also matches parent.
func Sub(text string, parent error) error { return &subError{text, parent} }

func (e *subError) Error() string { return e.text }

func (e *subError) Unwrap() error { return e.parent }

// OpError says which operation on which lock failed. It matches every error in causes.
type OpError struct {
	op, name string
	Causes   []error
}

// Error says what failed, and why, on one line.
func (e *OpError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "latchkey: %s %q", e.op, e.name)
	for _, cause := range e.Causes {
		text.WriteString(": ")
		text.WriteString(oneLine(cause.Error()))
	}
	return text.String()
}

// inLines finds the names in the text of an error, in quotes, the ends of its lines, and the
// prefixes that the outer error has.
var inLines = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|\n|latchkey: `)

// oneLine keeps joined errors on one line, and removes the prefix that the outer error has.
func oneLine(text string) string {
	return inLines.ReplaceAllStringFunc(text, func(part string) string {
		switch part {
		case "\n":
			return "; "
		case "latchkey: ":
			return ""
		}
		return part // a name
	})
}

// OneLine returns err for a log: its text has one line, and the prefix of the library at most once.
func OneLine(err error) error {
	if err == nil {
		return nil
	}
	return &lineError{err}
}

type lineError struct{ error }

func (e *lineError) Error() string {
	text, ours := strings.CutPrefix(e.error.Error(), "latchkey: ")
	text = oneLine(text)
	if ours {
		return "latchkey: " + text
	}
	return text
}

func (e *lineError) Unwrap() error { return e.error }

// Unwrap lets the caller match each cause.
func (e *OpError) Unwrap() []error { return e.Causes }

// Op builds the error of an operation from its causes, skipping nil ones.
func Op(op, name string, causes ...error) error {
	e := &OpError{op: op, name: name}
	for _, cause := range causes {
		if cause != nil {
			e.Causes = append(e.Causes, cause)
		}
	}
	return e
}

// WithVerb returns the error of an operation that the caller knows by another name.
func WithVerb(verb string, err error) error {
	var failed *OpError
	if errors.As(err, &failed) {
		return Op(verb, failed.name, failed.Causes...)
	}
	return err
}

// Invalid builds an ErrInvalid that names the value at fault.
func Invalid(format string, args ...any) error {
	for i, arg := range args {
		if d, is := arg.(time.Duration); is {
			args[i] = DurationText(d)
		}
	}
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// ErrNoFunction is the error of a Do, or of a Run, without a function to call.
var ErrNoFunction = Invalid("the function is nil")
