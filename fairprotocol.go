package latchkey

import (
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/serverline"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// fairSpec returns the spec of fair locks, with or without fencing tokens. All fair locks of a client
// share the list of its waiters.
func fairSpec(c *ownership.Engine, fenced bool) *acquire.Spec {
	q := fairLockQueueOf(c)
	if fenced {
		return q.fenced
	}
	return q.plain
}

// fairLockQueueOf returns the queues of the fair locks of a client.
func fairLockQueueOf(c *ownership.Engine) *fairLockQueue {
	return core.KindState(c.Parts, keyspace.KindFair, func() (*fairLockQueue, func()) { return newFairLockQueue(c) })
}

// fairLockQueue holds the queues of the fair locks of a client.
type fairLockQueue struct {
	waiters       *serverline.List
	plain, fenced *acquire.Spec
}

func newFairLockQueue(c *ownership.Engine) (q *fairLockQueue, atClose func()) {
	q = &fairLockQueue{}
	q.waiters = serverline.New(c, q, false)
	p := fairProtocol{waiters: q.waiters}
	plain := ownership.Spec{Kind: keyspace.KindFair, Family: keyspace.KindFair, Stored: keyspace.KindLock,
		Protocol: p, Renew: script.Renew, Renewals: renewal.MostInBatch, Reentrant: true, HandsOver: true, GrantMark: "f"}
	fenced := plain
	fenced.Fenced = true
	q.plain = &acquire.Spec{Spec: &plain, Attempts: p, Resolve: acquire.ResolveOwner, Fresh: acquire.FreshOwner, Wait: q.waiters.Wait}
	q.fenced = &acquire.Spec{Spec: &fenced, Attempts: p, Resolve: acquire.ResolveOwner, Fresh: acquire.FreshOwner, Wait: q.waiters.Wait}
	return q, q.waiters.Close
}

// AttemptsOf, refresh, keys, channel and entry implement [serverline.Queue].
func (q *fairLockQueue) AttemptsOf(w *serverline.Waiter) acquire.Attempts {
	return fairProtocol{waiters: q.waiters, waiter: w}
}
func (*fairLockQueue) Refresh() transport.Command          { return script.FairRefresh }
func (*fairLockQueue) Keys(p *ownership.Lock) []string     { return p.Names.FairKeys() }
func (*fairLockQueue) Channel(p *ownership.Lock) string    { return p.Names.WaiterChannel("") }
func (*fairLockQueue) Entry(o *ownership.Ownership) string { return o.Wire }

// fairProtocol is the protocol of the hash of a re-entrant lock with a queue next to it.
type fairProtocol struct {
	lock.Hash

	waiters *serverline.List
	waiter  *serverline.Waiter // of an acquisition that waits in the queue, or nil
}

func (p fairProtocol) AcquireCall(a *acquire.Acquisition, count, round int) script.Call {
	if count > 1 {
		return p.Hash.AcquireCall(a, count, round)
	}
	o := a.Ownership
	stale, ticket, grant := p.waiter.Args()
	fenced := "0"
	if o.Lock.Spec.Fenced {
		fenced = "1"
	}
	args := append(a.AcquireArgs(count),
		o.Lock.Client.Publish, o.Lock.Names.WaiterChannel(""), stale, ticket, p.waiters.RedissonWait, fenced, grant)
	return script.NewCall(script.FairAcquire, o.Lock.Names.FairKeys(), o.Lock.Client.Inbox.ChannelArgs(args, o.Lock.Names.Key)...)
}

// ReadRefusal reads the place in the queue that the script gave to a waiting ownership.
func (p fairProtocol) ReadRefusal(a *acquire.Acquisition, ans transport.Answer) (left time.Duration, err error) {
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
	a.Ownership.MarkQueued()
	p.waiters.SetPlace(p.waiter, ticket, ahead > 0 || holder != "" && !identity.IsOurs(holder))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return 0, errors.Join(script.ErrReply, err)
	}
	return script.FromMillis(pause), a.BusyWith(holder, script.FromMillis(lease)) // the pause may end sooner than the lease
}

func (p fairProtocol) ReleaseCall(o *ownership.Ownership, to ownership.Release, args []string) script.Call {
	waiting := o.WaitingArg()
	args = append(args, o.Wire, strconv.Itoa(to.Count), o.GuestID(), o.Lock.Client.Publish, o.Lock.Names.Channel, script.MillisText(to.Raise), waiting,
		o.Lock.Client.StaleMS)
	args = o.Lock.Client.Inbox.ChannelArgs(args, o.Lock.Names.Key)
	if to.Keep > 0 {
		args = append(args, p.waiters.RedissonWait, script.MillisText(to.Keep))
	}
	return script.NewCall(script.FairRelease, o.Lock.Names.FairKeys(), args...)
}
