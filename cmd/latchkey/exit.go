package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// Exit codes, from sysexits.h and the conventions of shells.
const (
	exitProofFailed   = 1
	exitUsage         = 64
	exitUnavailable   = 69
	exitSoftware      = 70
	exitNotAcquired   = 75
	exitLost          = 76
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignalled     = 128 // plus the number of the signal
)

// exitError ends the program with a code. Without err the program prints nothing:
// the code is that of a command, or the reason is already on the screen.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// silently ends the program with code, which may be 0, and prints nothing.
func silently(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

func exitWith(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func usageError(format string, args ...any) error {
	return exitWith(exitUsage, format, args...)
}

// libraryError gives an error of the library its exit code.
func libraryError(err error) error {
	var exit *exitError
	switch {
	case err == nil, errors.As(err, &exit): // an exitError already has a code
		return err
	case errors.Is(err, latchkey.ErrInvalid):
		return &exitError{code: exitUsage, err: plainError{err}}
	case errors.Is(err, latchkey.ErrWrongKind), errors.Is(err, latchkey.ErrNotSet):
		return &exitError{code: exitSoftware, err: plainError{err}}
	case errors.Is(err, latchkey.ErrGone), errors.Is(err, latchkey.ErrBroken):
		return &exitError{code: exitLost, err: plainError{err}}
	case errors.Is(err, latchkey.ErrUnavailable) && !errors.As(err, new(*tls.CertificateVerificationError)):
		return exitWith(exitUnavailable, "%w (try again when the server answers)", plainError{err})
	default:
		return &exitError{code: exitUnavailable, err: plainError{err}}
	}
}

// exitCodeOf returns the exit code of an error of the library.
func exitCodeOf(err error) int {
	var exit *exitError
	errors.As(libraryError(err), &exit)
	return exit.code
}

// report writes an error as one line and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var exit *exitError
	var topic cli.ExitCoder // latchkey --help for an unknown command
	switch {
	case errors.As(err, &exit):
	case errors.As(err, &topic):
		exit = &exitError{code: exitUsage, err: err}
	default:
		exit = &exitError{code: exitSoftware, err: err}
	}
	if exit.err != nil {
		say(stderr, "%v", exit.err)
	}
	return exit.code
}

// say writes a line that begins with the name of the program. It does not repeat
// the name if the text already begins with it.
func say(stderr io.Writer, format string, args ...any) {
	const name = "latchkey: "
	text := fmt.Sprintf(format, args...)
	if len(text) < len(name) || text[:len(name)] != name {
		text = name + text
	}
	_ = writeLines(stderr, text+"\n")
}
