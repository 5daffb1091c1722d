// Package fair has the fair lock, which is a hash with a queue next to it.
package fair

import (
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/waiters"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Spec returns the spec of fair locks, with or without fencing tokens. All fair locks of a client
// share the list of its waiters.
func Spec(c *core.Parts, fenced bool) *acquire.Spec {
	q := QueuesOf(c)
	if fenced {
		return q.fenced
	}
	return q.plain
}

// QueuesOf returns the queues of the fair locks of a client.
func QueuesOf(c *core.Parts) *Queues {
	return core.KindState(c, keyspace.KindFair, func() (*Queues, func()) { return newQueues(c) })
}

// Queues holds the queues of the fair locks of a client.
type Queues struct {
	Waiters       *waiters.List
	plain, fenced *acquire.Spec
}

func newQueues(c *core.Parts) (q *Queues, atClose func()) {
	q = &Queues{}
	q.Waiters = waiters.New(c, q, false)
	p := Protocol{Waiters: q.Waiters}
	q.plain = &acquire.Spec{
		Spec: &ownership.Spec{
			Kind: keyspace.KindFair, Family: keyspace.KindFair, Stored: keyspace.KindLock,
			Protocol: p,
			Renew:    script.Renew, Renewals: renewal.MostInBatch,
			Reentrant: true,
			GrantMark: "f",
		},
		Attempts: p,
		Wait:     q.Waiters.Wait,
	}
	q.fenced = q.plain.Copy()
	q.fenced.Fenced = true
	owners.RegisterGrants(c, q.plain.Spec, nil)
	return q, q.Waiters.Close
}

// AttemptsOf implements [waiters.Queue].
func (q *Queues) AttemptsOf(w *waiters.Waiter) acquire.Attempts {
	return Protocol{Waiters: q.Waiters, waiter: w}
}

// Refresh implements [waiters.Queue].
func (*Queues) Refresh() transport.Command { return script.FairRefresh }

// Keys implements [waiters.Queue].
func (*Queues) Keys(p *ownership.Lock) []string { return p.Names.FairKeys() }

// Channel implements [waiters.Queue].
func (*Queues) Channel(p *ownership.Lock) string { return p.Names.WaiterChannel("") }

// Entry implements [waiters.Queue].
func (*Queues) Entry(o *ownership.Ownership) string { return o.Wire }

// Protocol is the protocol of the hash of a re-entrant lock with a queue next to it.
type Protocol struct {
	lock.Hash

	Waiters *waiters.List
	waiter  *waiters.Waiter // of an acquisition that waits in the queue, or nil
}

// AcquireCall implements [acquire.Attempts].
func (p Protocol) AcquireCall(a *acquire.Acquisition, count, round int) script.Call {
	if count > 1 {
		return p.Hash.AcquireCall(a, count, round)
	}
	o := a.Ownership
	stale, ticket, grant := p.waiter.Args()
	fenced := "0"
	if o.Spec.Fenced {
		fenced = "1"
	}
	args := append(a.AcquireArgs(count),
		o.Client.Publish, o.Names.WaiterChannel(""), stale, ticket, p.Waiters.RedissonWait, fenced, grant)
	args = o.Client.Inbox.ChannelArgs(args, o.Names.Key)
	return script.NewCall(script.FairAcquire, o.Names.FairKeys(), args...)
}

// ReadRefusal reads the place in the queue that the script gave to a waiting ownership.
func (p Protocol) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (left time.Duration, err error) {
	reply, err := ans.Message.ToArray()
	if p.waiter == nil || err != nil {
		return a.ReadHolder(ans)
	}
	if len(reply) < 5 {
		return 0, script.ErrReply
	}
	pause, err1 := reply[0].AsInt64()
	ticket, err2 := reply[1].AsUint64()
	holder, err3 := reply[2].ToString()
	ahead, err4 := reply[3].AsInt64()
	lease, err5 := reply[4].AsInt64()
	a.Ownership.Entry.WaitBegins()
	p.Waiters.SetPlace(p.waiter, ticket, ahead > 0 || holder != "" && !identity.IsOurs(holder))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return 0, errors.Join(script.ErrReply, err)
	}
	// The pause may end sooner than the lease.
	return script.FromMillis(pause), a.BusyWith(holder, script.FromMillis(lease))
}

// ReleaseCall implements [ownership.Protocol].
func (p Protocol) ReleaseCall(o *ownership.Ownership, to ownership.Release, args []string) script.Call {
	args = append(args,
		o.Wire, strconv.Itoa(to.Count), o.GuestID(), o.Client.Publish, o.Names.Channel,
		script.MillisText(to.Raise), to.MayWaitArg(), o.Client.StaleMS)
	args = o.Client.Inbox.ChannelArgs(args, o.Names.Key)
	if to.Keep > 0 {
		args = append(args, p.Waiters.RedissonWait, script.MillisText(to.Keep))
	}
	return script.NewCall(script.FairRelease, o.Names.FairKeys(), args...)
}
