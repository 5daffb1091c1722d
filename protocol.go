package latchkey

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/lua"
)

// protocol defines how a kind of lock is stored in Redis: the scripts that change it, and their arguments for
// an ownership. Every call is safe to send twice, because counts are absolute.
type protocol interface {
	// acquireCall makes the ownership hold the lock count times. round is 0 for the first attempt of an
	// acquisition.
	acquireCall(a *acquisition, count, round int) script.Call
	// readRefusal reads a reply to acquireCall that is a number or an array: a refusal. The error matches
	// ErrNotAcquired. left is the time after which to try again, negative if the script does not know.
	readRefusal(a *acquisition, ans transport.Answer) (left time.Duration, err error)
	// releaseCall lowers the count of the ownership; with 0 the ownership is removed from Redis. The arguments
	// are appended to args.
	releaseCall(o *ownership, to release, args []string) script.Call
	// renewalCall returns one ownership's part of a batch of renewals.
	renewalCall(o *ownership, lease time.Duration) script.Call
	// renewalCalls returns a renewal of each key of the ownership, or nil if it cannot be renewed key by key.
	renewalCalls(o *ownership, lease time.Duration) []script.Call
}

// release is what a release leaves.
type release struct {
	count int           // holds of the ownership
	raise time.Duration // if there are any: the remaining time of the lock at least
	// keep is for how long the lock stays taken if nobody holds it any more. If it is not 0, it is the last
	// argument of the call.
	keep time.Duration
}

// Where the owner of a lock is stored in its key, as lua/shared/renew.lua names it.
const (
	inHash   = "hash"
	inString = "string"
)

// stringProtocol stores a token in a string.
type stringProtocol struct{}

func (stringProtocol) acquireCall(a *acquisition, _, round int) script.Call {
	o := a.ownership
	if round == 0 && !o.mayBeQueued() {
		return script.NewCall(script.MutexSet, a.lock.names.Alone(), append(a.argsBuffer(), o.wire, o.lock.client.leaseText(a.lease))...)
	}
	place, keys := a.queuePlace(round), a.lock.names.Alone()
	if place.known() {
		keys = a.lock.names.Queued()
	}
	args := append(a.argsBuffer(), o.wire, o.lock.client.leaseText(a.lease), place.entry, place.oldEntry, place.poll)
	return script.NewCall(script.MutexAcquire, keys, args...)
}

func (stringProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	return a.readHolder(ans)
}

// releaseCall returns no call for a partial release, because a mutex cannot be re-entered.
func (stringProtocol) releaseCall(o *ownership, to release, args []string) script.Call {
	if to.count > 0 {
		return script.Call{}
	}
	names := o.lock.names
	args = append(o.handoverArgs(append(args, o.wire, names.Channel, o.lock.client.publish), 0), o.openArg(), script.MillisText(to.keep))
	return script.NewCall(script.MutexRelease, names.Queued(), withoutUsual(args, usualOfMutexRelease)...)
}

func (stringProtocol) renewalCall(o *ownership, lease time.Duration) script.Call {
	return renewalOf(o, inString, o.wire, lease)
}

func (stringProtocol) renewalCalls(*ownership, time.Duration) []script.Call { return nil }

// hashProtocol stores the owner and its count in a hash.
type hashProtocol struct{}

func (hashProtocol) acquireCall(a *acquisition, count, round int) script.Call {
	names, place, fenced := a.lock.names, queuePlace{}, ""
	c, queued := script.NewCall(script.LockAcquire, names.Alone()), names.Queued()
	if a.lock.spec.fenced {
		c.Keys, queued, fenced = names.Counted(), names.Fenced(), "1"
	}
	if count == 1 {
		place = a.queuePlace(round)
	}
	if place.known() {
		c.Cmd, c.Keys = script.LockAcquireQueued, queued
	}
	c.Args = withoutUsual(append(a.acquireArgs(count), fenced, place.entry, place.oldEntry, place.poll), usualOfAcquire)
	return c
}

// The default values of the scripts' last arguments. Each argument costs the server as much as a tenth of a
// command.
var (
	usualOfAcquire      = lua.Args("lock/acquire").Usual
	usualOfRelease      = lua.Args("lock/release").Usual
	usualOfMutexRelease = lua.Args("mutex/release").Usual
)

// withoutUsual leaves out trailing arguments that have their usual values.
func withoutUsual(args, usual []string) []string {
	least := len(args) - len(usual)
	for n := len(args); n > least && args[n-1] == usual[n-1-least]; n-- {
		args = args[:n-1]
	}
	return args
}

// acquireArgs returns the first arguments of all scripts that acquire a hash.
func (a *acquisition) acquireArgs(count int) []string {
	o := a.ownership
	return append(a.argsBuffer(), o.wire, o.lock.client.leaseText(a.lease), strconv.Itoa(count), o.guestID(), o.lock.client.tokenFloor)
}

func (hashProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	return a.readHolder(ans)
}

func (hashProtocol) releaseCall(o *ownership, to release, args []string) script.Call {
	names := o.lock.names
	args = append(args, o.wire, names.Channel, strconv.Itoa(to.count), o.guestID(), script.MillisText(to.raise), o.lock.client.publish)
	args = append(o.handoverArgs(args, to.count), script.MillisText(to.keep))
	return script.NewCall(script.LockRelease, names.Fenced(), withoutUsual(args, usualOfRelease)...)
}

func (hashProtocol) renewalCall(o *ownership, lease time.Duration) script.Call {
	return renewalOf(o, inHash, o.wire, lease)
}

func (hashProtocol) renewalCalls(*ownership, time.Duration) []script.Call { return nil }

func renewalOf(o *ownership, where, owner string, lease time.Duration) script.Call {
	return script.NewCall(o.lock.spec.renew, []string{o.lock.names.Key}, where, owner, o.guestID(), script.MillisText(lease))
}
