package model

import (
	"slices"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/waiters"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() { models["permits"] = newFairPermitModel }

// fairPermitModel is the semaphore whose permits have ids, which are granted in order of arrival. A
// waiter that gives signs of life keeps its place.
type fairPermitModel struct {
	*permitModel

	waiters map[*party]*modelPermitWaiter
	tickets map[*party]uint64 // of the parties that have their permits
	before  fairPermitState
}

// modelPermitWaiter is what a party knows of its place.
type modelPermitWaiter struct {
	ticket uint64 // 0: not received yet
	sign   int64  // ms: the last sign of life that was answered, 0 if it may have no place
}

// fairPermitState is what the server stores.
type fairPermitState struct {
	queue, alive, grants, ids testredis.Entry
}

func newFairPermitModel(w *world) model {
	m := &fairPermitModel{permitModel: newPermitModel(w), waiters: map[*party]*modelPermitWaiter{}, tickets: map[*party]uint64{}}
	for _, p := range m.parties {
		fresh := p.newOwnership
		p.newOwnership = func() *ownership.Ownership {
			delete(m.waiters, p)
			delete(m.tickets, p)
			return fresh()
		}
		p.onAttempt = func() { m.noteAttempt(p) }
		p.onGrant = func(any) {
			p.t.Lease.Granted = fromMS(p.granted)
			if f := m.waiters[p]; f != nil && f.ticket > 0 {
				m.tickets[p] = f.ticket
			}
			delete(m.waiters, p)
		}
		p.onRefusal = func(reply any) { m.refused(p, reply) }
	}
	return m
}

func (m *fairPermitModel) actions() []modelAction {
	return append(m.permitModel.actions(),
		modelAction{"refresh", 20, m.refresh},
		modelAction{"deliver", 10, m.deliverGrant},
		modelAction{"damage", 2, m.damage})
}

// noteAttempt records that an attempt may give the party its first place.
func (m *fairPermitModel) noteAttempt(p *party) {
	if p.waits && m.waiters[p] == nil {
		m.waiters[p] = &modelPermitWaiter{}
	}
}

func (m *fairPermitModel) refused(p *party, reply any) {
	list, is := reply.([]any)
	if !p.waits {
		if len(list) != 3 {
			m.w.fail("%s is queued and did not want to wait", p.name)
		}
		return
	}
	if !is || len(list) != 5 {
		m.w.fail("%s waits, and is told %v", p.name, reply)
	}
	ticket, err := strconv.ParseUint(list[3].(string), 10, 64)
	f := m.waiters[p]
	if err != nil || f.ticket > 0 && ticket != f.ticket {
		m.w.fail("%s is told the ticket %v after %d", p.name, list[3], f.ticket)
	}
	f.ticket, p.inQueue.Ticket, f.sign = ticket, ticket, m.w.ms()
	now := m.state()
	free, _ := m.free()
	if head := now.queue.List; len(head) > 0 && head[0] == semaphore.EntryOf(p.t) && free >= int64(len(p.together())) {
		m.w.fail("%s is the first, and is refused, and there are %d", p.name, free)
	}
	queued := slices.Contains(now.queue.List, semaphore.EntryOf(p.t))
	if n := int64(len(p.together())); !queued && n <= m.total {
		m.w.fail("%s is refused and not in the queue, and wants %d of %d", p.name, n, m.total)
	}
	if told := list[4] != int64(2); told != queued {
		m.w.fail("%s is told that it is in the queue: %v, and it is: %v", p.name, told, queued)
	}
}

func (m *fairPermitModel) state() fairPermitState {
	keys := m.parties[0].lock.Names.FairPermitKeys()
	s := m.w.State(keys[1:]...)
	return fairPermitState{ids: s[0], queue: s[1], alive: s[2], grants: s[3]}
}

// refresh sends signs of life for the waiters of a client.
func (m *fairPermitModel) refresh(d dice) {
	c := m.w.clients[d[0]%len(m.w.clients)]
	var places []*waiters.Waiter
	var parties []*party
	names := ""
	for _, p := range m.parties {
		if f := m.waiting(p); f != nil && f.ticket > 0 && p.lock.Client == c {
			places, parties = append(places, p.inQueue), append(parties, p)
			names += p.name + " "
		}
	}
	if places == nil {
		return
	}
	b := semaphore.QueuesOf(c).Waiters.NewRefreshing()
	b.Add(places)
	msg := &message{what: names + "alive", words: m.w.words(b.Call), light: true, silent: func() {}}
	msg.answered = func(reply any) {
		states, is := reply.([]any)
		if !is || len(states) != len(places) {
			m.w.fail("%s: %v", msg.what, reply)
		}
		for i, p := range parties {
			if f := m.waiting(p); f != nil && states[i] == int64(waiters.InPlace) {
				f.sign = msg.sent / 1000
			} else if f != nil {
				f.sign = 0 // it must try again
			}
		}
	}
	m.w.send(msg, d.fate())
}

// waiting returns what a party knows of its place, nil if it wants none.
func (m *fairPermitModel) waiting(p *party) *modelPermitWaiter {
	if p.t == nil || p.phase != ownership.Acquiring || !p.waits {
		delete(m.waiters, p)
	}
	return m.waiters[p]
}

// deliverGrant delivers the message that reports a grant, if there was a grant.
func (m *fairPermitModel) deliverGrant(d dice) {
	p := m.parties[d[0]%len(m.parties)]
	if m.waiting(p) == nil || !m.has(m.state(), p) || slices.Contains(m.state().queue.List, semaphore.EntryOf(p.t)) {
		return
	}
	if p.t.Doubt.Acquisition() {
		return // it may have acquired them itself, and then no message comes
	}
	p.receiveGrant(modelMessage{p.t.Wire, "0"})
}

// has reports whether the permits of a party are held.
func (m *fairPermitModel) has(s fairPermitState, p *party) bool {
	for _, t := range p.together() {
		if score, there := s.ids.Fields[identity.RawID(t.Wire)]; !there || numeral(score) <= m.w.ms() {
			return false
		}
	}
	return true
}

// damage deletes keys. A waiter that lost its place gets it back when it tries again.
func (m *fairPermitModel) damage(d dice) {
	keys := m.parties[0].lock.Names.FairPermitKeys()
	if i := 2 + d[0]%4; i < len(keys) {
		m.w.say("%s is deleted", keys[i])
		m.w.Must("DEL", keys[i])
	} else {
		m.permitModel.damage(d)
	}
	for _, f := range m.waiters {
		f.sign = 0
	}
	m.before = m.state()
}

// ticket returns the place of a party, if it is known. A late copy of a command may give the queue
// another place for a short time: the ticket that the party received counts.
func (m *fairPermitModel) ticket(p *party) uint64 {
	if f := m.waiting(p); f != nil && f.ticket > 0 {
		return f.ticket
	}
	if told := m.tickets[p]; told > 0 {
		return told
	}
	if score, there := m.before.queue.Fields[semaphore.EntryOf(p.t)]; there {
		return uint64(numeral(score))
	}
	return 1 << 62
}

func (m *fairPermitModel) check() {
	m.permitModel.check()
	now := m.state()
	for _, p := range m.parties {
		if p.t == nil {
			continue
		}
		if m.has(now, p) && !m.has(m.before, p) && len(m.before.ids.List) < len(now.ids.List) {
			m.overtakes(p, now)
		}
		f := m.waiting(p)
		if f != nil && int64(len(p.together())) > m.total {
			f.sign = 0 // it may have no place until it asks again
		}
		if f == nil || f.sign == 0 || m.w.ms() >= f.sign+stale {
			continue
		}
		if !slices.Contains(now.queue.List, semaphore.EntryOf(p.t)) && !m.has(now, p) && m.set {
			if m.has(m.before, p) || m.hadGrant(p) {
				f.sign = 0 // its grant has expired: it must try again
				continue
			}
			m.w.fail("%s has lost its place, %d ms after its last sign of life", p.name, m.w.ms()-f.sign)
		}
	}
	m.before = now
}

// hadGrant reports whether the permits of a party were held and their leases are now over.
func (m *fairPermitModel) hadGrant(p *party) bool {
	_, there := m.before.ids.Fields[identity.RawID(p.t.Wire)]
	return there
}

// overtakes fails if a live waiter that came before a party still waits when that party gets its
// permits.
func (m *fairPermitModel) overtakes(p *party, now fairPermitState) {
	for _, other := range m.parties {
		if other == p || m.waiting(other) == nil || int64(len(other.together())) > m.total {
			continue
		}
		entry := semaphore.EntryOf(other.t)
		before, wasQueued := m.before.queue.Fields[entry]
		_, isQueued := now.queue.Fields[entry]
		if wasQueued && isQueued && numeral(now.alive.Fields[entry]) > m.w.ms() && uint64(numeral(before)) < m.ticket(p) {
			m.w.fail("%s overtakes %s", p.name, other.name)
		}
	}
}

// finish lets every waiter have its turn.
func (m *fairPermitModel) finish() {
	for len(m.w.late) > 0 {
		m.w.deliver(0)
		m.check()
	}
	for _, o := range m.operators {
		m.retryOne(o, 0)
	}
	wants := func(p *party) bool {
		return m.waiting(p) != nil && m.set && int64(len(p.together())) <= m.total
	}
	for turn := 0; slices.ContainsFunc(m.parties, wants); turn++ {
		if turn > 1000 {
			m.w.fail("nobody is granted permits for more than an hour: %v", m.state().queue.List)
		}
		for _, p := range m.parties {
			switch {
			case wants(p):
				p.sendAttempt(0)
			case p.t != nil && p.phase != ownership.Acquiring:
				p.leave()
			case len(p.toUndo) > 0:
				p.undo(0, 0)
			}
			m.check()
		}
		m.w.advance(4000)
	}
	m.permitModel.finish()
}
