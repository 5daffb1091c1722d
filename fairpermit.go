package latchkey

import (
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// lua/fairsem_queue.lua describes how Redis stores the permits of a fair semaphore and their
// waiters.

// fairPermitSpec returns the spec of the permits of fair semaphores. The client keeps their waiters
// in a list.
func fairPermitSpec(c *Client) *spec {
	return c.kindState(KindFairPermit, newFairPermitQueue).(*fairPermitQueue).spec
}

// fairPermitQueue holds the queues of the fair semaphores of a client.
type fairPermitQueue struct {
	waiters  *fairWaitList
	spec     *spec
	channels map[string]*fairPermitChannel // by the key of the semaphore; fairWaitList.mu guards it
}

func newFairPermitQueue(c *Client) kindState {
	q := &fairPermitQueue{channels: map[string]*fairPermitChannel{}}
	q.waiters = newFairWaitList(c, q)
	q.waiters.sharedChannel = true
	s := *permitSpec
	q.spec = &s
	s.kind, s.protocol, s.fresh, s.wait, s.handsOver = KindFairPermit, fairPermitProtocol{}, freshFairPermits, q.waiters.wait, true
	s.grantMark, s.inUse, s.channel = "p", permitsInUse, semaphoreChannel
	return q
}

// close implements [kindState].
func (q *fairPermitQueue) close() { q.waiters.close() }

// refresh, keys, channel and entry implement [fairQueue].
func (*fairPermitQueue) refresh() transport.Command  { return fairsemRefresh }
func (*fairPermitQueue) keys(p *primitive) []string  { return p.keys().fairPermitKeys() }
func (*fairPermitQueue) channel(p *primitive) string { return p.keys().channel }
func (*fairPermitQueue) entry(o *ownership) string   { return o.permitEntry() }

func (q *fairPermitQueue) protocolFor(w *fairWaiter) protocol {
	p := w.ownership.protocol().(fairPermitProtocol)
	p.waiter = w
	return p
}

// listen implements [fairQueue]. All waiters of a client share one channel. A message on it makes
// the first of them try again; the others receive grants.
func (q *fairPermitQueue) listen(w *fairWaiter) {
	lock := w.ownership.lock
	if q.waiters.client.notifier == nil || q.channels[lock.key] != nil {
		return
	}
	h := &fairPermitChannel{queue: q, key: lock.key, usedAt: time.Now()}
	q.channels[lock.key] = h
	s := &subscription{channel: lock.keys().channel, to: h}
	q.waiters.client.notifier.add(&subscription{channel: presenceChannel(lock.key), to: presence{s}})
	q.waiters.client.notifier.add(s)
}

// fairPermitChannel is a channel that announces free permits that nobody has been granted. Its
// usedAt is guarded by fairWaitList.mu.
type fairPermitChannel struct {
	queue  *fairPermitQueue
	key    string
	usedAt time.Time
}

// message implements [subscriber].
func (h *fairPermitChannel) message(string) { h.reconnected() }

// reconnected implements [subscriber].
func (h *fairPermitChannel) reconnected() {
	l := h.queue.waiters
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.byKey[h.key]
	if line == nil {
		return
	}
	l.wake(line.Front().Value.(*fairWaiter))
	e := line.Front().Next()
	for i := 1; i < nearest && e != nil; i++ { // the front may want more than there are in all
		if w := e.Value.(*fairWaiter); !w.grantable {
			l.wake(w)
		}
		e = e.Next()
	}
}

// retire implements [subscriber].
func (h *fairPermitChannel) retire(linger time.Duration) bool {
	l := h.queue.waiters
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[h.key] != nil {
		h.usedAt = time.Now()
	}
	if time.Since(h.usedAt) < linger {
		return false
	}
	delete(h.queue.channels, h.key)
	return true
}

// permitEntry is the entry of an ownership in the queue. Permits that are requested together have
// one entry, named after the first of them.
func (o *ownership) permitEntry() string { return o.lock.client.id + ":" + o.wire }

// freshFairPermits is freshPermits for a fair semaphore.
func freshFairPermits(a *acquisition) (first *ownership, others []*ownership) {
	c, n := a.lock.client, max(a.together, 1)
	ids := c.newGroupIDs(n)
	for permitsInUse(c.registry, a.lock.key, ids[0]) { // since before the numbers wrapped around
		ids = c.newGroupIDs(n)
	}
	return permitsOfIDs(a, ids, func(p permitProtocol) protocol {
		return fairPermitProtocol{permitProtocol: p}
	})
}

// permitsInUse reports whether this client holds any permit of a group, or is acquiring one.
func permitsInUse(r *registry, key, first string) bool {
	return slices.ContainsFunc(groupOf(first), func(id string) bool { return r.known(permitName(key, id)) != nil })
}

// fairPermitProtocol is the protocol of one permit of a fair semaphore.
type fairPermitProtocol struct {
	permitProtocol

	waiter *fairWaiter // of an acquisition that waits in the queue, or nil
}

func (p fairPermitProtocol) keys(o *ownership) []string {
	keys := o.lock.keys().fairPermitKeys()
	if p.permanent {
		keys = append(keys, permitVoidKey(o.lock.key, p.leader))
	}
	return keys
}

func (p fairPermitProtocol) acquireCall(a *acquisition, _, _ int) call {
	o, awaits := a.ownership, ""
	stale, ticket, grant := p.waiter.args()
	if p.waiter != nil {
		o.markQueued()
	}
	if a.awaitSet {
		awaits = "1"
	}
	args := []string{o.permitEntry(), p.leaseText(a), stale, ticket, grant, awaits, o.lock.client.publish, o.lock.keys().channel}
	return call{fairsemAcquire, p.keys(o), o.lock.client.handover.channelArgs(args, o.lock.key)}
}

// readRefusal reads the place in the queue that the script gave to a waiting ownership.
func (p fairPermitProtocol) readRefusal(a *acquisition, ans transport.Answer) (time.Duration, error) {
	left, place, err := readPermitRefusal(ans, a.permits())
	if p.waiter == nil || place == nil {
		return left, err
	}
	ticket, unset := place[0], place[1]
	p.waiter.list.setPlace(p.waiter, uint64(ticket), true)
	if unset == 1 {
		return left, errNotSetYet
	}
	return left, err
}

// releaseCall, for the first of a group that was never acquired, gives up the whole group and its
// place in the queue.
func (p fairPermitProtocol) releaseCall(o *ownership, count int, _ int64, args []string) call {
	if count > 0 {
		return call{}
	}
	id, entry, mark := rawID(o.wire), "", ""
	if !o.hasBegun() && (p.leader == o.wire || p.leader == "") {
		id, entry = "", o.permitEntry()
	}
	if p.permanent && o.mayBeAcquired() {
		mark = millisText(lateDelivery)
	}
	args = append(args, id, entry, mark, o.lock.client.publish, o.lock.keys().channel)
	return call{fairsemLeave, p.keys(o), o.lock.client.handover.channelArgs(args, o.lock.key)}
}
