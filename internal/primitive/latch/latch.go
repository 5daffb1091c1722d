// Package latch has the countdown latch.
package latch

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Latch is a countdown latch. On the wire it is Redisson's RCountDownLatch.
type Latch struct {
	object.Object

	State, Done string // keys
}

// New returns the latch with that name.
func New(c *core.Parts, name string) Latch {
	sharded := c.Publish == "SPUBLISH"
	o := object.New(c, keyspace.KindLatch, name, func(key string) string { return Channel(key, sharded) })
	tag := keyspace.Tag(o.Names.Key)
	return Latch{Object: o, State: keyspace.LatchKey(tag), Done: "latchkey_latch_done:" + tag}
}

// Channel returns Redisson's channel. If the key has braces, that channel is in another slot,
// which sharded messages do not permit: the latch then has a channel of this library. Redisson
// itself cannot use such a key in a cluster.
func Channel(key string, sharded bool) string {
	if sharded && strings.Contains(key, "{") {
		return "latchkey_latch__channel:" + key
	}
	return "redisson_countdownlatch__channel__{" + key + "}"
}

// TrySetCount begins a round of n counts unless the latch is closed, and reports whether it did.
func (l *Latch) TrySetCount(ctx context.Context, n int, settings []request.Setting) (bool, error) {
	const verb = "try set count"
	ttl, err := object.TimeToLive(settings)
	if err = errors.Join(l.Names.Invalid, err, request.CheckNumber("count %d", n, 1)); err != nil {
		return false, fault.Op(verb, l.Names.Name, err)
	}
	v, err := l.now(ctx, verb)
	if err != nil || v.What == Closed {
		return false, err
	}
	return script.Bool(l.SendOrRepeat(ctx, verb, func(o *undo.Operation) script.Call {
		return script.NewCall(script.LatchSet, l.changeKeys(o),
			o.Number, v.Round, strconv.Itoa(n), ttl, l.Client.Publish, l.Names.Channel)
	}))
}

// CountDownAs counts once in a round for a participant, from any process.
func (l *Latch) CountDownAs(ctx context.Context, participant string) (int, error) {
	if n := len(participant); n == 0 || n > keyspace.MaxLength || !utf8.ValidString(participant) {
		return 0, fault.Op("count down", l.Names.Name, l.Names.Invalid,
			fault.Invalid("%q cannot be the name of a participant", participant))
	}
	return l.CountDown(ctx, 1, participant)
}

// CountDown counts n times, for a participant or "", and returns the number of counts left.
func (l *Latch) CountDown(ctx context.Context, n int, participant string) (int, error) {
	const verb = "count down"
	if err := errors.Join(l.Names.Invalid, request.CheckNumber("count %d", n, 1)); err != nil {
		return 0, fault.Op(verb, l.Names.Name, err)
	}
	parent := l.Client.Reporter.Parent(ctx)
	ctx = l.Client.Sender.Detached(ctx)
	v, a, err := l.Look(ctx, "", false)
	switch {
	case err != nil && (a.Doubt || object.MayStillRun(err)):
		// The server does not answer. The count must not be lost, so it goes to the round that
		// exists when the server answers again.
		l.SendLater(l.countIn("", n, participant))
		return 0, fault.Op(verb, l.Names.Name, fault.ErrUnknownOutcome, err)
	case err != nil:
		return 0, fault.Op(verb, l.Names.Name, l.Explain(ctx, transport.Answer{}, err)...)
	case v.What != Closed:
		return 0, l.roundError(verb, v)
	}
	a, err = l.SendUntilDone(ctx, verb, l.countIn(v.Round, n, participant))
	if err != nil {
		return 0, err
	}
	left, err := script.Int(a)
	switch {
	case left < 0:
		return 0, fault.Op(verb, l.Names.Name, fault.ErrGone)
	case err == nil:
		l.Client.Reporter.Observe(parent, report.Event{
			Type: report.CountedDown, Kind: l.Kind, Name: l.Names.Name, Count: left,
		})
	}
	return left, err
}

// countIn returns a function that builds the command that counts in a round, or in the current
// round if round is "".
func (l *Latch) countIn(round string, n int, participant string) func(*undo.Operation) script.Call {
	return func(o *undo.Operation) script.Call {
		return script.NewCall(script.LatchCount, l.changeKeys(o),
			o.Number, round, strconv.Itoa(n), participant, l.Client.Publish, l.Names.Channel)
	}
}

// Count returns how many counts are left on the server.
func (l *Latch) Count(ctx context.Context) (int, error) {
	v, err := l.now(ctx, "count")
	if err != nil {
		return 0, err
	}
	return v.Left, l.roundError("count", v)
}

// Delete removes the latch, and reports whether it existed.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	const verb = "delete"
	for {
		v, err := l.now(ctx, verb)
		if err != nil || v.What == latchUnset {
			return false, err
		}
		a, err := l.SendOrRepeat(ctx, verb, func(o *undo.Operation) script.Call {
			return script.NewCall(script.LatchDelete, l.changeKeys(o),
				o.Number, v.Round, l.Client.Publish, l.Names.Channel)
		})
		if err != nil {
			return false, err
		}
		if n, err := script.Int(a); n >= 0 || err != nil {
			return n == 1, err
		}
	}
}
