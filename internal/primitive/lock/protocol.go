// Package lock has the kinds of locks that are stored in a hash or in a string, and what they send.
package lock

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/queue"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/lua"
)

// Where the owner of a lock is stored in its key, as lua/shared/renew.lua names it.
const (
	inHash   = "hash"
	inString = "string"
)

// String stores a token in a string.
type String struct{}

// AcquireCall implements [acquire.Attempts].
func (String) AcquireCall(a *acquire.Acquisition, _, round int) script.Call {
	o := a.Ownership
	if round == 0 && !o.Entry.MayBeQueued() {
		args := append(a.ArgsBuffer(), o.Wire, o.Client.LeaseText(a.Lease))
		return script.NewCall(script.MutexSet, a.Lock.Names.Alone(), args...)
	}
	place, keys := a.QueuePlace(round), a.Lock.Names.Alone()
	if place.Known() {
		keys = a.Lock.Names.Queued()
	}
	args := append(a.ArgsBuffer(), o.Wire, o.Client.LeaseText(a.Lease), place.Entry, place.OldEntry, place.Poll)
	return script.NewCall(script.MutexAcquire, keys, args...)
}

// ReadRefusal implements [acquire.Attempts].
func (String) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (time.Duration, error) {
	return a.ReadHolder(ans)
}

// ReleaseCall returns no call for a partial release, because a mutex cannot be re-entered.
func (String) ReleaseCall(o *ownership.Ownership, to ownership.Release, args []string) script.Call {
	if to.Count > 0 {
		return script.Call{}
	}
	names := o.Names
	args = append(args, o.Wire, names.Channel, o.Client.Publish)
	args = append(to.QueueArgs(args, o.Lock), script.MillisText(to.Open), script.MillisText(to.Keep))
	return script.NewCall(script.MutexRelease, names.Queued(), WithoutUsual(args, UsualOfMutexRelease)...)
}

// RenewalCall implements [ownership.Protocol].
func (String) RenewalCall(o *ownership.Ownership, lease time.Duration) script.Call {
	return renewalOf(o, inString, o.Wire, lease)
}

// Hash stores the owner and its count in a hash.
type Hash struct{}

// AcquireCall implements [acquire.Attempts].
func (Hash) AcquireCall(a *acquire.Acquisition, count, round int) script.Call {
	names, place, fenced := a.Lock.Names, queue.Place{}, ""
	c, queued := script.NewCall(script.LockAcquire, names.Alone()), names.Queued()
	if a.Lock.Spec.Fenced {
		c.Keys, queued, fenced = names.Counted(), names.Fenced(), "1"
	}
	if count == 1 {
		place = a.QueuePlace(round)
	}
	if place.Known() {
		c.Cmd, c.Keys = script.LockAcquireQueued, queued
	}
	c.Args = WithoutUsual(append(a.AcquireArgs(count), fenced, place.Entry, place.OldEntry, place.Poll), UsualOfAcquire)
	return c
}

// The default values of the scripts' last arguments. Each argument costs the server as much as a
// tenth of a command.
var (
	UsualOfAcquire      = lua.Args("lock/acquire").Usual
	UsualOfRelease      = lua.Args("lock/release").Usual
	UsualOfMutexRelease = lua.Args("mutex/release").Usual
)

// WithoutUsual leaves out trailing arguments that have their usual values.
func WithoutUsual(args, usual []string) []string {
	least := len(args) - len(usual)
	for n := len(args); n > least && args[n-1] == usual[n-1-least]; n-- {
		args = args[:n-1]
	}
	return args
}

// ReadRefusal implements [acquire.Attempts].
func (Hash) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (time.Duration, error) {
	return a.ReadHolder(ans)
}

// ReleaseCall implements [ownership.Protocol].
func (Hash) ReleaseCall(o *ownership.Ownership, to ownership.Release, args []string) script.Call {
	names := o.Names
	args = append(args,
		o.Wire, names.Channel, strconv.Itoa(to.Count), o.GuestID(), script.MillisText(to.Raise), o.Client.Publish)
	args = append(to.QueueArgs(args, o.Lock), script.MillisText(to.Keep))
	return script.NewCall(script.LockRelease, names.Fenced(), WithoutUsual(args, UsualOfRelease)...)
}

// RenewalCall implements [ownership.Protocol].
func (Hash) RenewalCall(o *ownership.Ownership, lease time.Duration) script.Call {
	return renewalOf(o, inHash, o.Wire, lease)
}

func renewalOf(o *ownership.Ownership, where, owner string, lease time.Duration) script.Call {
	return script.NewCall(o.Spec.Renew, []string{o.Names.Key},
		where, owner, o.GuestID(), script.MillisText(lease))
}
