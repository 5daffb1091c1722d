package latchkey

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// busyError is ErrNotAcquired with what the client knows of the holder.
type busyError struct {
	holder string                    // its owner, or ""
	labels func(owner string) string // the labels of clients, or nil
	left   time.Duration             // of its lease at that time; negative if unknown
	at     time.Time
	kept   bool // the holder has released the lock, which stays taken

	here  bool   // this client is the holder
	label string // its label, or ""
	note  string // of that hold, or ""
	bare  bool   // nothing else is known of that hold so far: see Client.withOwnHold

	// Of a read/write lock:
	reads  bool   // the holder is a reader
	others bool   // there are other readers
	first  string // if nobody holds the lock against the caller: who goes first
	inside bool   // and those wait for a hold of this client
}

func (e *busyError) Error() string {
	text := ErrNotAcquired.Error()
	switch who := e.who(); {
	case e.first != "":
		text += ": " + e.first + " go first"
		if e.inside {
			text += ", and wait for a call of this process"
		}
	case e.kept && who != "":
		text += ": released by " + who + ", kept until it expires"
	case who != "":
		text += ": held by " + who
	}
	switch left := e.left; {
	case left >= time.Second:
		text += ", " + transport.DurationText(left.Truncate(time.Second)) + " left"
	case left > 0:
		text += ", " + transport.DurationText(left.Truncate(time.Millisecond)) + " left"
	}
	return text
}

// who describes the holder, or returns "" if nothing is known.
func (e *busyError) who() string {
	who := e.holder
	switch {
	case e.here:
		return e.whoHere()
	case who == "" && e.reads:
		return "readers"
	case who == "" && e.left >= 0:
		return "somebody else"
	}
	if e.labels != nil && who != "" {
		if label := e.labels(who); label != "" {
			who = label + " (owner " + who + ")"
		}
	}
	if e.reads {
		who = "reader " + who
	}
	if e.others {
		who += " and others"
	}
	return who
}

// whoHere describes a holder in this client.
func (e *busyError) whoHere() string {
	who := "another call of this process"
	if e.reads {
		who = "a reader of this process"
	}
	var details []string
	if e.label != "" {
		details = append(details, e.label)
	}
	if e.note != "" {
		details = append(details, strconv.Quote(e.note))
	}
	if details != nil {
		who += " (" + strings.Join(details, ", ") + ")"
	}
	if e.others {
		who += " and others"
	}
	return who
}

func (e *busyError) Unwrap() error { return ErrNotAcquired }

// later returns the error for the end of a wait, when less of the lease is left.
func (e *busyError) later() *busyError {
	later := *e
	if e.left >= 0 {
		later.left = max(e.left-time.Since(e.at), -1)
	}
	return &later
}

// permitsError is ErrNotAcquired with the numbers of permits.
type permitsError struct {
	wanted, free int
	total        int // negative if unknown
}

func (e *permitsError) Error() string {
	text := ErrNotAcquired.Error()
	switch {
	case e.free >= e.wanted:
		text += ": others go first"
	case e.free <= 0:
		text += ": no permit is free"
	case e.free == 1:
		text += ": only 1 permit is free"
	default:
		text += fmt.Sprintf(": only %d permits are free", e.free)
	}
	if e.total >= max(e.free, 0) {
		text += fmt.Sprintf(": %d of %d acquired", e.total-e.free, e.total)
	}
	return text
}

func (e *permitsError) Unwrap() error { return ErrNotAcquired }

// waitError is the error of a call that waits for something other than a lock: it matches some sentinels, and
// says in its own words what has not happened.
type waitError struct {
	text string
	is   []error
}

func notYet(format string, args ...any) error {
	return &waitError{"latchkey: " + fmt.Sprintf(format, args...), []error{ErrNotAcquired}}
}

// errNotSetYet is for calls that wait until somebody has set the object.
var errNotSetYet error = &waitError{ErrNotSet.Error(), []error{ErrNotAcquired, ErrNotSet}}

func (e *waitError) Error() string   { return e.text }
func (e *waitError) Unwrap() []error { return e.is }
