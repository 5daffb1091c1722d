package transport

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// ErrClientClosed means that the rueidis client was found closed before the command was sent.
// ErrClosing alone does not mean that: commands in flight get it too when a connection is closed,
// by its owner or in a failover.
var ErrClientClosed = fmt.Errorf("latchkey: not sent: the rueidis client is closed: %w", rueidis.ErrClosing)

// This file classifies the errors of a command:
//
//	event                                      outcome    what the caller gets
//	-----------------------------------------  ---------  ---------------------------------
//	a reply, nil included                      Answered   no error
//	an error reply that retries cannot change  Refused    that reply, or what its code means
//	too few replicas confirmed                 Refused    ErrNotReplicated
//	LOADING, READONLY, MISCONF … (temporary)   TryLater   ErrUnavailable
//	not dialed, no slot, no node, closed by    NotSent    ErrUnavailable
//	the owner of a borrowed client
//	a script stopped half way, an error reply  Uncertain  ErrUnavailable, ErrUnknownOutcome
//	that no known server sends
//	a script was executed, and any of these    Uncertain
//	came instead of the confirmation
//	a broken connection, no answer in time,    Uncertain  ErrUnavailable, ErrUnknownOutcome;
//	the end of the caller's context                       the context's error
//
// replies.go says which error replies are which. All failures except refusals are repeated first,
// for as long as the call may take. ErrUnknownOutcome is only for commands that change something.

// Outcome is what an error says about a command.
type Outcome int

// Possible outcomes of a command.
const (
	Answered  Outcome = iota // the server did what the reply says
	Refused                  // the server will not do it, now or later
	TryLater                 // the server did not do it, but may soon
	NotSent                  // the command never reached a server
	Uncertain                // done, not done, or possibly done later
)

// Final reports whether the server has answered or refused, so that there is nothing to repeat.
func (o Outcome) Final() bool { return o == Answered || o == Refused }

// Heard reports whether the server has answered at all, so that it is up.
func (o Outcome) Heard() bool { return o.Final() || o == TryLater }

// Classify returns the outcome for the error of one command, by the table above; nil is an answer.
func Classify(err error) Outcome {
	if err == nil || rueidis.IsRedisNil(err) {
		return Answered
	}
	var reply *rueidis.RedisError
	var dial *net.OpError
	var refusal *refusalError
	var executed *executedError
	switch {
	case fault.IsContextEnd(err), errors.As(err, &executed):
		return Uncertain
	case errors.As(err, &reply):
		outcome := parseReply(reply.Error()).class().outcome()
		if outcome == Uncertain && errors.Is(err, errUnsent) { // it answers the greeting of a new connection
			return NotSent
		}
		return outcome
	case errors.Is(err, fault.ErrNotReplicated), errors.As(err, &refusal):
		return Refused
	case errors.Is(err, ErrClientClosed), errors.Is(err, errSlots), errors.Is(err, errUnsent), errors.Is(err, errElsewhere),
		errors.Is(err, rueidis.ErrNoSlot), errors.Is(err, errNoNodes):
		return NotSent
	case errors.As(err, &dial) && dial.Op == "dial":
		return NotSent
	}
	return Uncertain
}

// refusalError is an error that does not come from a server but counts as a refusal.
type refusalError struct{ error }

func (e *refusalError) Unwrap() error { return e.error }

// Refusal returns err as an error that classifies as refused, because neither waiting nor another
// attempt can change it. It matches everything that err matches.
func Refusal(err error) error { return &refusalError{err} }

// Declined reports whether the server has replied to a query that it will not answer it. A reply
// that no known server sends counts too: a query changes nothing. It is not for what decides for good.
func Declined(err error) bool {
	return Classify(err) == Refused || isReply(err, func(r errorReply) bool { return r.class() == unknownReply })
}

// HasCode reports whether err is a reply of the server with that code. The cause of an ended
// context does not count.
func HasCode(err error, code string) bool {
	return isReply(err, func(r errorReply) bool { return r.code == code })
}

func anyReply(errorReply) bool { return true }

// isReply reports whether err is an error reply of the server for which is returns true.
func isReply(err error, is func(errorReply) bool) bool {
	if err == nil || err == rueidis.Nil { //nolint:errorlint // most are, unwrapped
		return false
	}
	var reply *rueidis.RedisError
	return !fault.IsContextEnd(err) && errors.As(err, &reply) && is(parseReply(reply.Error()))
}

// halfMovedError is a reply about a migrating slot, with an explanation.
type halfMovedError struct{ reply error }

func (e *halfMovedError) Error() string {
	return "the cluster slot is being moved, and the server does not look at keys of which some have moved " +
		"and some have not; this works again when the slot has moved: " + e.reply.Error()
}

func (e *halfMovedError) Unwrap() error { return e.reply }

// explained adds an explanation to a reply of the server if it needs one.
func explained(err error) error {
	halfMoved := func(r errorReply) bool { return r.code == "TRYAGAIN" || r.class() == halfWayReply }
	if isReply(err, halfMoved) {
		return &halfMovedError{err}
	}
	return err
}

// Unavailable wraps the reason why the server did not answer in ErrUnavailable, unless it matches
// that already. It never returns nil.
func Unavailable(err error) error {
	switch {
	case err == nil:
		return fault.ErrUnavailable
	case errors.Is(err, fault.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", fault.ErrUnavailable, err)
}

// StoppedAfter returns the error of a call that was stopped while it rested after trouble:
// ErrClosed alone if that is why it was stopped, otherwise an ErrUnavailable that matches both.
func StoppedAfter(before, stopped error) error {
	if errors.Is(stopped, fault.ErrClosed) {
		return stopped
	}
	return Unavailable(errors.Join(before, stopped))
}

// isContextError reports whether an error is that of any context.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
