package latchkey

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// protocol is how a kind of lock stands in Redis: the scripts that change it, and
// what they are told of an ownership. Every call is safe to send twice, because counts
// are absolute.
type protocol interface {
	// acquireCall makes the ownership hold the lock count times. round is 0 at the first
	// attempt of an acquisition.
	acquireCall(a *acquisition, count, round int) call
	// readRefusal reads the reply to that if it is a number or an array, by which the
	// script says that the lock is not to be had: the error is, or matches,
	// ErrNotAcquired, and comes with the time after which to ask again, negative if the
	// script does not know.
	readRefusal(a *acquisition, ans transport.Answer) (left time.Duration, err error)
	// releaseCall lowers the count of the ownership; with 0 it has nothing in Redis any
	// more. If the lock stays held, what is left of its time is raised to raise ms.
	releaseCall(t *ownership, count int, raise int64) call
	// renewalCall is one ownership's part of a batch of renewals.
	renewalCall(t *ownership, lease time.Duration) call
}

// keyByKey is a protocol whose holds have several keys, each of which can be renewed by
// itself.
type keyByKey interface {
	// renewalCalls are sent one after the other. The hold is renewed if all of them say so.
	renewalCalls(t *ownership, lease time.Duration) []call
}

// Where the owner of a lock stands in its key, in the words of renew.lua.
const (
	inHash   = "hash"
	inString = "string"
)

// stringProtocol is a token in a string.
type stringProtocol struct{}

func (stringProtocol) acquireCall(a *acquisition, _, round int) call {
	t := a.ownership
	c := call{mutexAcquire, t.lock.alone(), []string{t.wire, t.client.leaseText(a.lease)}}
	if round == 0 {
		c.cmd = mutexSet
	}
	return c
}

func (stringProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	return a.readHolder(ans)
}

// releaseCall of a part of a hold that cannot be entered twice is nothing.
func (stringProtocol) releaseCall(t *ownership, count int, _ int64) call {
	if count > 0 {
		return call{}
	}
	return call{mutexRelease, t.lock.alone(), []string{t.wire, t.client.publish, t.lock.channel}}
}

func (stringProtocol) renewalCall(t *ownership, lease time.Duration) call {
	return renewalOf(t, inString, t.wire, lease)
}

// hashProtocol is a hash with the owner and its count.
type hashProtocol struct{}

func (hashProtocol) acquireCall(a *acquisition, count, _ int) call {
	t := a.ownership
	c := call{lockAcquire, t.lock.alone(), acquireArgs(t, a.lease, count)}
	if t.lock.spec.fenced {
		c.keys = []string{t.lock.key, t.lock.token}
	}
	return c
}

// acquireArgs are what all scripts that acquire a hash are told first.
func acquireArgs(t *ownership, lease time.Duration, count int) []string {
	return []string{t.wire, t.client.leaseText(lease), strconv.Itoa(count), t.participantID, t.client.tokenFloor}
}

func (hashProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	return a.readHolder(ans)
}

func (hashProtocol) releaseCall(t *ownership, count int, raise int64) call {
	return call{lockRelease, t.lock.alone(), releaseArgs(t, count, raise)}
}

// releaseArgs are what all scripts that release a hash are told first.
func releaseArgs(t *ownership, count int, raise int64) []string {
	return []string{t.wire, strconv.Itoa(count), t.participantID, t.client.publish, t.lock.channel, strconv.FormatInt(raise, 10)}
}

func (hashProtocol) renewalCall(t *ownership, lease time.Duration) call {
	return renewalOf(t, inHash, t.wire, lease)
}

func renewalOf(t *ownership, where, owner string, lease time.Duration) call {
	return call{t.lock.spec.renew, t.lock.alone(), []string{where, owner, t.participantID, strconv.FormatInt(millis(lease), 10)}}
}
