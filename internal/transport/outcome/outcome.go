// Package outcome says what happened to a command: what its error means, and what the call of the
// program returns.
package outcome

import (
	"errors"
	"net"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

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
		o := parseReply(reply.Error()).class().outcome()
		if o == Uncertain && errors.Is(err, ErrUnsent) { // it answers the greeting of a new connection
			return NotSent
		}
		return o
	case errors.Is(err, fault.ErrNotReplicated), errors.As(err, &refusal):
		return Refused
	case errors.Is(err, ErrClientClosed), errors.Is(err, ErrTooManyInFlight), errors.Is(err, ErrUnsent),
		errors.Is(err, ErrElsewhere), errors.Is(err, rueidis.ErrNoSlot), errors.Is(err, ErrNoNodes):
		return NotSent
	case errors.As(err, &dial) && dial.Op == "dial":
		return NotSent
	}
	return Uncertain
}

// Declined reports whether the server has replied to a query that it will not answer it. A reply
// that no known server sends counts too: a query changes nothing. It is not for what decides for
// good.
func Declined(err error) bool {
	return Classify(err) == Refused || isReply(err, func(r errorReply) bool { return r.class() == unknownReply })
}

// HasCode reports whether err is a reply of the server with that code. The cause of an ended
// context does not count.
func HasCode(err error, code string) bool {
	return isReply(err, func(r errorReply) bool { return r.code == code })
}

// IsReply reports whether err is an error reply, of the server or of a proxy.
func IsReply(err error) bool { return isReply(err, func(errorReply) bool { return true }) }

// IsAway reports whether err is a reply after which only another connection can help.
func IsAway(err error) bool {
	return isReply(err, func(r errorReply) bool { return r.class() == awayReply })
}

// isReply reports whether err is an error reply of the server for which is returns true.
func isReply(err error, is func(errorReply) bool) bool {
	if err == nil || err == rueidis.Nil { //nolint:errorlint // most are, unwrapped
		return false
	}
	var reply *rueidis.RedisError
	return !fault.IsContextEnd(err) && errors.As(err, &reply) && is(parseReply(reply.Error()))
}
