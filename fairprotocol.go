package latchkey

import (
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// fairSpec returns the spec of fair locks, with or without fencing tokens. All fair locks of a client
// share the list of its waiters.
func fairSpec(c *engine, fenced bool) *acquireSpec {
	q := fairLockQueueOf(c)
	if fenced {
		return q.fenced
	}
	return q.plain
}

// fairLockQueueOf returns the queues of the fair locks of a client.
func fairLockQueueOf(c *engine) *fairLockQueue {
	return core.KindState(c.Parts, keyspace.KindFair, func() (*fairLockQueue, func()) { return newFairLockQueue(c) })
}

// fairLockQueue holds the queues of the fair locks of a client.
type fairLockQueue struct {
	waiters       *fairWaitList
	plain, fenced *acquireSpec
}

func newFairLockQueue(c *engine) (q *fairLockQueue, atClose func()) {
	q = &fairLockQueue{}
	q.waiters = newFairWaitList(c, q)
	p := fairProtocol{waiters: q.waiters}
	plain := spec{kind: keyspace.KindFair, family: keyspace.KindFair, stored: keyspace.KindLock,
		protocol: p, renew: script.Renew, renewals: renewal.MostInBatch, reentrant: true, handsOver: true, grantMark: "f"}
	fenced := plain
	fenced.fenced = true
	q.plain = &acquireSpec{spec: &plain, attempts: p, resolve: resolveOwner, fresh: freshOwner, wait: q.waiters.wait}
	q.fenced = &acquireSpec{spec: &fenced, attempts: p, resolve: resolveOwner, fresh: freshOwner, wait: q.waiters.wait}
	return q, q.waiters.close
}

// attemptsOf, refresh, keys, channel and entry implement [fairQueue].
func (q *fairLockQueue) attemptsOf(w *fairWaiter) attemptProtocol {
	return fairProtocol{waiters: q.waiters, waiter: w}
}
func (*fairLockQueue) refresh() transport.Command  { return script.FairRefresh }
func (*fairLockQueue) keys(p *primitive) []string  { return p.names.FairKeys() }
func (*fairLockQueue) channel(p *primitive) string { return p.names.WaiterChannel("") }
func (*fairLockQueue) entry(o *ownership) string   { return o.wire }

// listen implements [fairQueue]. Each waiter has a channel of its own.
func (q *fairLockQueue) listen(w *fairWaiter) {
	if w.strangers || !w.grantable {
		w.queue.Subscribe(q.waiters.client.Notifier, w.ownership.lock.names.WaiterChannel(w.ownership.wire))
	}
}

// fairProtocol is the protocol of the hash of a re-entrant lock with a queue next to it.
type fairProtocol struct {
	hashProtocol

	waiters *fairWaitList
	waiter  *fairWaiter // of an acquisition that waits in the queue, or nil
}

func (p fairProtocol) acquireCall(a *acquisition, count, round int) script.Call {
	if count > 1 {
		return p.hashProtocol.acquireCall(a, count, round)
	}
	o := a.ownership
	stale, ticket, grant := p.waiter.args()
	fenced := "0"
	if o.lock.spec.fenced {
		fenced = "1"
	}
	args := append(a.acquireArgs(count),
		o.lock.client.Publish, o.lock.names.WaiterChannel(""), stale, ticket, p.waiters.redissonWait, fenced, grant)
	return script.NewCall(script.FairAcquire, o.lock.names.FairKeys(), o.lock.client.Inbox.ChannelArgs(args, o.lock.names.Key)...)
}

// readRefusal reads the place in the queue that the script gave to a waiting ownership.
func (p fairProtocol) readRefusal(a *acquisition, ans transport.Answer) (left time.Duration, err error) {
	reply, err := ans.Message.ToArray()
	if p.waiter == nil || err != nil {
		return a.readHolder(ans)
	}
	if len(reply) < 5 {
		return 0, script.ErrReply
	}
	pause, err1 := reply[0].AsInt64()
	ticket, err2 := reply[1].AsUint64()
	holder, err3 := reply[2].ToString()
	ahead, err4 := reply[3].AsInt64()
	lease, err5 := reply[4].AsInt64()
	a.ownership.markQueued()
	p.waiters.setPlace(p.waiter, ticket, ahead > 0 || holder != "" && !identity.IsOurs(holder))
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return 0, errors.Join(script.ErrReply, err)
	}
	return script.FromMillis(pause), a.busyWith(holder, script.FromMillis(lease)) // the pause may end sooner than the lease
}

func (p fairProtocol) releaseCall(o *ownership, to release, args []string) script.Call {
	waiting := o.waitingArg()
	args = append(args, o.wire, strconv.Itoa(to.count), o.guestID(), o.lock.client.Publish, o.lock.names.Channel, script.MillisText(to.raise), waiting,
		o.lock.client.StaleMS)
	args = o.lock.client.Inbox.ChannelArgs(args, o.lock.names.Key)
	if to.keep > 0 {
		args = append(args, p.waiters.redissonWait, script.MillisText(to.keep))
	}
	return script.NewCall(script.FairRelease, o.lock.names.FairKeys(), args...)
}
