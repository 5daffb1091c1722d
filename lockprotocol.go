package latchkey

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/lua"
)

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
		return script.NewCall(script.MutexSet, a.lock.names.Alone(), append(a.argsBuffer(), o.wire, o.lock.client.LeaseText(a.Lease))...)
	}
	place, keys := a.queuePlace(round), a.lock.names.Alone()
	if place.known() {
		keys = a.lock.names.Queued()
	}
	args := append(a.argsBuffer(), o.wire, o.lock.client.LeaseText(a.Lease), place.entry, place.oldEntry, place.poll)
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
	args = append(o.handoverArgs(append(args, o.wire, names.Channel, o.lock.client.Publish), 0), o.openArg(), script.MillisText(to.keep))
	return script.NewCall(script.MutexRelease, names.Queued(), withoutUsual(args, usualOfMutexRelease)...)
}

func (stringProtocol) renewalCall(o *ownership, lease time.Duration) script.Call {
	return renewalOf(o, inString, o.wire, lease)
}

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

func (hashProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	return a.readHolder(ans)
}

func (hashProtocol) releaseCall(o *ownership, to release, args []string) script.Call {
	names := o.lock.names
	args = append(args, o.wire, names.Channel, strconv.Itoa(to.count), o.guestID(), script.MillisText(to.raise), o.lock.client.Publish)
	args = append(o.handoverArgs(args, to.count), script.MillisText(to.keep))
	return script.NewCall(script.LockRelease, names.Fenced(), withoutUsual(args, usualOfRelease)...)
}

func (hashProtocol) renewalCall(o *ownership, lease time.Duration) script.Call {
	return renewalOf(o, inHash, o.wire, lease)
}

func renewalOf(o *ownership, where, owner string, lease time.Duration) script.Call {
	return script.NewCall(o.lock.spec.renew, []string{o.lock.names.Key}, where, owner, o.guestID(), script.MillisText(lease))
}
