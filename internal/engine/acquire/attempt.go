package acquire

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/queue"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Attempt makes one attempt from the caller's point of view: it overcomes trouble with the server
// within the retry budget. A nil error means that the ownership has begun. With ErrNotAcquired,
// left is the remaining lease of the holder, negative if unknown.
func (a *Acquisition) Attempt(ctx context.Context, round int) (left time.Duration, err error) {
	if a.Lock.Spec.Along && a.readsAlong() {
		return 0, nil
	}
	a.Start()
	o := a.Ownership
	if o.Entry != nil {
		switch begun, known := a.takeGrant(); {
		case begun:
			a.observeAttempt(nil)
			return 0, nil
		case known && round == 0:
			return queue.LongestPause, a.BusyWith("", -1)
		}
	}
	a.pollIn = 0
	ans, err := a.send(ctx, 1, round)
	ans.Doubt = ans.Doubt || outcome.StoppedHalfWay(err)
	a.answered(ans)
	a.noQueue, a.tooFew = ans.KeysOmitted != nil, errors.Is(err, fault.ErrNotReplicated)
	left = -1
	switch {
	case err != nil && a.AwaitsSet():
		err = script.AwaitsSet(err)
	case err != nil:
	case script.Granted(ans):
		err = a.Accept(ans)
	default:
		left, err = a.Attempts().ReadRefusal(a, ans)
	}
	a.observeAttempt(err)
	return left, err
}

// Attempts returns what the attempts send: those of the kind of lock, or of a waiter in a queue.
func (a *Acquisition) Attempts() Attempts {
	if a.Queued != nil {
		return a.Queued
	}
	return a.Lock.Spec.Attempts
}

// AcquireArgs returns the first arguments of all scripts that acquire a hash.
func (a *Acquisition) AcquireArgs(count int) []string {
	o := a.Ownership
	return append(a.ArgsBuffer(),
		o.Wire, o.Client.LeaseText(a.Lease), strconv.Itoa(count), o.GuestID(), o.Client.TokenFloor)
}

// send adds count holds on the server.
func (a *Acquisition) send(ctx context.Context, count, round int) (transport.Answer, error) {
	o := a.Ownership
	on, call := o.RequestBegins(count, a.Waits), a.Attempts().AcquireCall(a, count, round)
	ans, err := o.Client.Sender.CallOn(ctx, o.Client.Closing, on, call)
	if err == nil && ans.Plain && ans.Null {
		// SET NX was refused because the key exists. Its value may be our own, if the answer to
		// the first attempt was lost.
		a.answered(ans)
		return a.send(ctx, count, round+1)
	}
	if err != nil || o.Client.Replication == nil || !script.Granted(ans) {
		return ans, err
	}
	return o.Client.Confirm(ctx, ans, a.Attempts().AcquireCall(a, count, round+1))
}

// Accept begins the ownerships that the server granted, unless the answer took so long that the
// lease has ended.
func (a *Acquisition) Accept(ans transport.Answer) error {
	c := a.Lock.Client
	if async.IsClosed(c.Closing) {
		a.markUnwanted()
		return fault.ErrClosed
	}
	now := c.Clock()
	if a.Lease-lease.Margin(a.Lease) <= now.Since(ans.Sent) {
		a.markUnwanted()
		return outcome.Unavailable(errLate)
	}
	term, token := lease.NewTerm(ans.Sent, a.Lease, a.RenewLease, a.MaxHold), script.Token(ans)
	for o := range a.each {
		o.Begin(&a.Request, term, ans.Sent, now, token)
	}
	return nil
}

var errLate = errors.New("latchkey: the lease was over when the answer came")

// ReadHolder reads a reply that says for how long the lock is held, and by whom if the script
// knows.
func (a *Acquisition) ReadHolder(ans transport.Answer) (left time.Duration, err error) {
	if ans.Message.IsInt64() {
		ms, err := ans.Message.AsInt64()
		if err != nil {
			return 0, errors.Join(script.ErrReply, err)
		}
		left = script.FromMillis(ms)
		return left, a.BusyWith("", left)
	}
	reply, err := ans.Message.ToArray()
	if err != nil || len(reply) < 2 || len(reply) > 4 {
		return 0, script.ErrReply
	}
	ms, err1 := reply[0].AsInt64()
	holder, err2 := reply[1].ToString()
	if err := errors.Join(err1, err2); err != nil {
		return 0, errors.Join(script.ErrReply, err)
	}
	if err := a.ReadPlace(reply[2:], ans.Sent); err != nil {
		return 0, errors.Join(script.ErrReply, err)
	}
	left = script.FromMillis(ms)
	return left, a.BusyWith(holder, left)
}

// ReadPlace reads what a refusal says of a place in the queue, if there is one: since when it waits
// and, if it is a poller, when it is to poll.
func (a *Acquisition) ReadPlace(place []rueidis.RedisMessage, sent lease.Stamp) error {
	if len(place) == 0 {
		return nil
	}
	since, err := place[0].ToString()
	if err != nil {
		return err
	}
	a.Ownership.Entry.SeenInQueue(since, sent)
	if len(place) > 1 {
		ms, err := place[1].AsInt64()
		a.pollIn = script.FromMillis(ms)
		return err
	}
	return nil
}

// mayBeHolder reports whether the holder that the server has named is of the client of o, or if o
// reads, one of several readers. "" is any holder.
func mayBeHolder(o *ownership.Ownership, holder string) bool {
	return holder == "" || o.Spec.IsShared() || strings.HasPrefix(holder, o.Client.ID)
}

// BusyWith is the error of an attempt that found the lock held. holder is its owner, or "" if
// unknown. left is what remains of its lease, negative if that does not tell when to try again.
func (a *Acquisition) BusyWith(holder string, left time.Duration) *fault.BusyError {
	a.holder, a.ByStranger = holder, holder != "" && !identity.IsOurs(holder)
	c := a.Lock.Client
	busy := &fault.BusyError{Holder: holder, Labels: c.Labels.LabelOf, Left: left, At: time.Now()}
	if h := identity.ReadHolder(holder, 1, false); h.Kept {
		busy.Holder, busy.Kept = h.Owner.String(), true
	} else if own := owners.NewestOn(c, a.Lock.Names.Key); own != nil && mayBeHolder(own, holder) {
		busy.Here, busy.Label, busy.Note = true, c.Config.Label, c.Record.NoteOf(own.Owner())
	}
	return busy
}
