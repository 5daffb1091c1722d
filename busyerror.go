package latchkey

import (
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// busyError is ErrNotAcquired with what the client knows of the holder.
type busyError struct {
	holder string        // its owner, or ""
	labels labels        // names of clients, or nil
	left   time.Duration // of its lease at that time; negative if unknown
	at     time.Time
	here   bool // this client is the holder
	kept   bool // the holder has released the lock, which stays taken

	// Of a read/write lock:
	reads  bool   // the holder is a reader
	others bool   // there are other readers
	first  string // if nobody holds the lock against the caller: who goes first
}

// labels knows the labels of clients.
type labels interface{ labelOf(owner string) string }

func (e *busyError) Error() string {
	text := ErrNotAcquired.Error()
	switch who := e.who(); {
	case e.first != "" && !e.here:
		text += ": " + e.first + " go first"
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
	if e.here {
		text += ": to enter it again, use the context of its hold"
	}
	return text
}

// who describes the holder, or returns "" if nothing is known.
func (e *busyError) who() string {
	who := e.holder
	switch {
	case e.here:
		return strings.TrimSpace("this client " + who)
	case who == "" && e.reads:
		return "readers"
	case who == "" && e.left >= 0:
		return "somebody else"
	}
	if e.labels != nil && who != "" {
		if label := e.labels.labelOf(who); label != "" {
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
