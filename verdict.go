package latchkey

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"
)

// errGone means that the rueidis client was found closed before the command was sent.
// A mere ErrClosing does not: whatever is on its way when a connection is closed, by
// its owner or in a failover, gets that too.
var errGone = fmt.Errorf("latchkey: not sent: the rueidis client is closed: %w", rueidis.ErrClosing)

// verdict says what an error tells about a command.
type verdict int

const (
	answered  verdict = iota // the server did what the reply says
	refused                  // the server will not do it, now or later
	notNow                   // the server did not do it, but may soon
	notSent                  // the command never reached a server
	uncertain                // done, not done, or still to be done
)

// temporaryCodes are refusals that a server in trouble gives before it executes
// anything.
var temporaryCodes = []string{
	"LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "BUSY ", "max number of clients",
	"MOVED ", "ASK ", // more often than rueidis follows: the nodes do not agree yet
	"UNBLOCKED", // the master of those who wait for replicas is none any more
}

// stoppedHalfWay is what a script is told that comes to a key which has moved to another
// node, with part of it done.
const stoppedHalfWay = "non local key"

// judge classifies the error of one command. Codes are looked for anywhere in
// the text, because servers differ in what they put in front.
func judge(err error) verdict {
	if err == nil || rueidis.IsRedisNil(err) {
		return answered
	}
	return judgeFailure(err)
}

// judgeFailure is apart because its variables cost an allocation each.
func judgeFailure(err error) verdict {
	var reply *rueidis.RedisError
	var dial *net.OpError
	switch {
	case ofContext(err):
		return uncertain
	case errors.As(err, &reply):
		switch {
		case containsAny(reply.Error(), temporaryCodes):
			return notNow
		case strings.Contains(reply.Error(), stoppedHalfWay):
			return uncertain
		}
		return refused
	case errors.Is(err, ErrNotReplicated), errors.Is(err, errLazyCluster):
		return refused
	case errors.Is(err, errGone), errors.Is(err, errSlots), errors.Is(err, errUnsent), errors.Is(err, errElsewhere),
		errors.Is(err, rueidis.ErrNoSlot):
		return notSent
	case errors.As(err, &dial) && dial.Op == "dial":
		return notSent
	}
	return uncertain
}

func containsAny(text string, codes []string) bool {
	for _, code := range codes {
		if strings.Contains(text, code) {
			return true
		}
	}
	return false
}

// hasCode reports whether err is a reply of the server with that code in it.
func hasCode(err error, code string) bool {
	if err == nil {
		return false
	}
	return codeIn(err, code)
}

func codeIn(err error, code string) bool {
	var reply *rueidis.RedisError
	return !ofContext(err) && errors.As(err, &reply) && strings.Contains(reply.Error(), code)
}

// halfMovedError is a reply about a slot that migrates, with what it means.
type halfMovedError struct{ reply error }

func (e *halfMovedError) Error() string {
	return "the cluster slot is being moved, and the server does not look at keys of which some have moved " +
		"and some have not; this works again when the slot has moved: " + e.reply.Error()
}

func (e *halfMovedError) Unwrap() error { return e.reply }

// explained adds to a reply of the server what the caller has to know.
func explained(err error) error {
	if hasCode(err, "TRYAGAIN") || hasCode(err, stoppedHalfWay) {
		return &halfMovedError{err}
	}
	return err
}
