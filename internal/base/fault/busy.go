package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// BusyError is ErrNotAcquired with what the client knows of the holder.
type BusyError struct {
	Holder string                    // its owner, or ""
	Labels func(owner string) string // the labels of clients, or nil
	Left   time.Duration             // of its lease at that time; negative if unknown
	At     time.Time
	Kept   bool // the holder has released the lock, which stays taken

	Here  bool   // this client is the holder
	Label string // its label, or ""
	Note  string // of that hold, or ""
	Bare  bool   // nothing else is known of that hold so far: see acquire.WithOwnHold

	// Of a read/write lock:
	Reads  bool   // the holder is a reader
	Others bool   // there are other readers
	First  string // if nobody holds the lock against the caller: who goes first
	Inside bool   // and those wait for a hold of this client
}

// Error says who has the lock, and for how long.
func (e *BusyError) Error() string {
	text := ErrNotAcquired.Error()
	switch who := e.who(); {
	case e.First != "":
		text += ": " + e.First + " go first"
		if e.Inside {
			text += ", and wait for a call of this process"
		}
	case e.Kept && who != "":
		text += ": released by " + who + ", kept taken by its AtLeast"
	case who != "":
		text += ": held by " + who
	}
	switch left := e.Left; {
	case left >= time.Second:
		text += ", " + DurationText(left.Truncate(time.Second)) + " left"
	case left > 0:
		text += ", " + DurationText(left.Truncate(time.Millisecond)) + " left"
	}
	return text
}

// who describes the holder, or returns "" if nothing is known.
func (e *BusyError) who() string {
	who := e.Holder
	switch {
	case e.Here:
		return e.whoHere()
	case who == "" && e.Reads:
		return "readers"
	case who == "" && e.Left >= 0:
		return "somebody else"
	}
	if e.Labels != nil && who != "" {
		if label := e.Labels(who); label != "" {
			who = label + " (owner " + who + ")"
		}
	}
	if e.Reads {
		who = "reader " + who
	}
	if e.Others {
		who += " and others"
	}
	return who
}

// whoHere describes a holder in this client.
func (e *BusyError) whoHere() string {
	who := "another call of this process"
	if e.Reads {
		who = "a reader of this process"
	}
	var details []string
	if e.Label != "" {
		details = append(details, e.Label)
	}
	if e.Note != "" {
		details = append(details, strconv.Quote(e.Note))
	}
	if details != nil {
		who += " (" + strings.Join(details, ", ") + ")"
	}
	if e.Others {
		who += " and others"
	}
	return who
}

// Unwrap lets the caller match ErrNotAcquired.
func (e *BusyError) Unwrap() error { return ErrNotAcquired }

// Later returns the error for the end of a wait, when less of the lease is left.
func (e *BusyError) Later() *BusyError {
	later := *e
	if e.Left >= 0 {
		later.Left = max(e.Left-time.Since(e.At), -1)
	}
	return &later
}

// PermitsError is ErrNotAcquired with the numbers of permits.
type PermitsError struct {
	Wanted, Free int
	Total        int // negative if unknown
}

// Error says how many permits are free.
func (e *PermitsError) Error() string {
	text := ErrNotAcquired.Error()
	switch {
	case e.Free >= e.Wanted:
		text += ": others go first"
	case e.Free <= 0:
		text += ": no permit is free"
	case e.Free == 1:
		text += ": only 1 permit is free"
	default:
		text += fmt.Sprintf(": only %d permits are free", e.Free)
	}
	if e.Total >= max(e.Free, 0) {
		text += fmt.Sprintf(": %d of %d acquired", e.Total-e.Free, e.Total)
	}
	return text
}

// Unwrap lets the caller match ErrNotAcquired.
func (e *PermitsError) Unwrap() error { return ErrNotAcquired }

// WaitError is the error of a call that waits for something other than a lock: it matches some
// sentinels, and says in its own words what has not happened.
type WaitError struct {
	text string
	is   []error
}

// NotYet returns an ErrNotAcquired in other words.
func NotYet(format string, args ...any) error {
	return &WaitError{"latchkey: " + fmt.Sprintf(format, args...), []error{ErrNotAcquired}}
}

// ErrNotSetYet is for calls that wait until somebody has set the object.
var ErrNotSetYet error = &WaitError{ErrNotSet.Error(), []error{ErrNotAcquired, ErrNotSet}}

// Error says what has not happened.
func (e *WaitError) Error() string { return e.text }

// Unwrap lets the caller match the sentinels.
func (e *WaitError) Unwrap() []error { return e.is }

// candidateError is the error of a campaign. Its text speaks of a leader instead of a lock.
type candidateError struct{ error }

// Candidate returns the error of a campaign that failed with err.
func Candidate(err error) error { return candidateError{err} }

var leaderWords = strings.NewReplacer("not acquired: held by ", "another leads: ", "not acquired", "another leads")

func (e candidateError) Error() string { return leaderWords.Replace(e.error.Error()) }
func (e candidateError) Unwrap() error { return e.error }
