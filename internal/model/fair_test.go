package model

import (
	"slices"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/waiters"
	"github.com/latchkey-go/latchkey/internal/primitive/fair"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

func init() { models["fair"] = newFairModel }

// fairModel is the fair lock: one owner at a time, in order of arrival. A waiter that gives signs
// of life keeps its place.
type fairModel struct {
	*lockModel

	waiters map[*party]*modelFairWaiter
	waits   map[*javaThread]bool // the waiters of Redisson in the queue

	queue, deadlines, notes testredis.Entry
	lost                    bool // the notes were lost, and with them the order of arrival
	torn                    bool // the queue or the deadlines were deleted without the other
	// muddled says that a waiter is, or was, odd: waiters that come back are placed by its ticket,
	// not by its place.
	muddled bool
}

// modelFairWaiter is what a party knows of its place.
type modelFairWaiter struct {
	ticket uint64 // 0: not received yet
	asked  int64  // ms: the first attempt that may have given it its place
	sign   int64  // ms: the last sign of life, 0 if it has no place
	// odd says that its place is not that of its ticket. The reply with the first ticket may have
	// been lost; or the waiter had died and lost its place, and a late copy of its first attempt
	// gave it another.
	odd    bool
	broken bool // it may have no place: a reply said so, or there was damage
}

// stale is how long a waiter counts as alive, in ms.
var stale = script.Millis(settings.StaleWaiterTimeout)

func newFairModel(w *world) model {
	m := &fairModel{lockModel: newLockModel(w, func(c *core.Parts) *acquire.Spec { return fair.Spec(c, false) }), waiters: map[*party]*modelFairWaiter{}, waits: map[*javaThread]bool{}}
	for _, p := range m.parties {
		p.onGrant = func(any) { m.granted(p) }
		p.onRefusal = func(reply any) { m.refused(p, reply) }
		p.onAttempt = func() { m.noteAttempt(p) }
	}
	return m
}

// grants checks that a waiter that was made the owner did not overtake anybody. The waiter itself
// finds out when it tries again.
func (m *fairModel) grants(before testredis.Entry) {
	for _, p := range m.parties {
		f := m.waiter(p)
		if f != nil && m.before.Count(p.t.Wire) > 0 && before.Count(p.t.Wire) == 0 {
			m.w.say("%s is the owner", p.name)
			if !m.lost { // otherwise the same step may have put the queue in order
				m.overtakes(p.name, p.t.Wire, f)
			}
			f.sign, f.asked = 0, 0
		}
	}
}

// waiter returns what a party knows of its place, nil if it wants none.
func (m *fairModel) waiter(p *party) *modelFairWaiter {
	if p.t == nil || p.phase != ownership.Acquiring || p.inQueue == nil {
		delete(m.waiters, p)
		return nil
	}
	if f := m.waiters[p]; f != nil && p.round > 0 {
		return f
	}
	m.waiters[p] = &modelFairWaiter{}
	return m.waiters[p]
}

// live reports whether a party must have its place. A party that has died may have got another
// place by a late copy of its first attempt.
func (m *fairModel) live(p *party) bool {
	f := m.waiter(p)
	if f == nil {
		return false
	}
	if noted := m.noted(p.t.Wire); noted > 0 && noted != f.ticket {
		return false
	}
	return !f.broken && f.sign > 0 && f.ticket > 0 && m.w.ms() < f.sign+stale
}

// noted returns the ticket that the server knows for an owner, or 0.
func (m *fairModel) noted(owner string) uint64 {
	since, _, _ := strings.Cut(m.notes.Fields[owner], ":")
	ticket, _ := strconv.ParseUint(since, 10, 64)
	return ticket
}

func (m *fairModel) noteAttempt(p *party) {
	if p.round == 1 {
		delete(m.waiters, p)
	}
	if f := m.waiter(p); f != nil && f.asked == 0 {
		f.asked = m.w.ms()
	}
}

func (m *fairModel) refused(p *party, reply any) {
	f := m.waiter(p)
	list, is := reply.([]any)
	if !p.waits || !is {
		return // for a caller that does not wait, the array names the holder
	}
	if f == nil {
		m.w.fail("%s is queued and did not want to wait", p.name)
		return
	}
	ticket, err := strconv.ParseUint(list[1].(string), 10, 64)
	if err != nil || f.ticket > 0 && ticket != f.ticket {
		m.w.fail("%s is told the ticket %v after %d", p.name, list[1], f.ticket)
	}
	f.odd = f.odd || f.ticket == 0 && m.lost
	f.ticket, p.inQueue.Ticket = ticket, ticket
	if f.sign == 0 {
		f.sign = f.asked
	}
}

// granted checks that an owner that is granted a free lock did not overtake anybody.
func (m *fairModel) granted(p *party) {
	f := m.waiters[p]
	delete(m.waiters, p)
	if m.before.TTL == -2 && len(p.grips) == 1 {
		m.overtakes(p.name, p.t.Wire, f)
	}
}

// overtakes fails if a live waiter came before an owner that is granted a free lock. A waiter that
// lost its place but has a ticket may come to the front from outside the queue.
func (m *fairModel) overtakes(name, owner string, f *modelFairWaiter) {
	at := slices.Index(m.queue.List, owner)
	ticket := m.noted(owner) // the waiter may not have received it
	if f != nil && f.ticket > 0 {
		ticket = f.ticket
	}
	ticketed := ticket > 0
	for _, other := range m.parties {
		if !m.live(other) {
			continue
		}
		if before := slices.Index(m.queue.List, other.t.Wire); !ticketed && (at < 0 || before < at) {
			m.w.fail("%s overtakes %s", name, other.name)
		}
		if ticketed && !m.muddled && !(f != nil && f.odd) && !m.waiter(other).odd && m.noted(other.t.Wire) > 0 && ticket > m.waiter(other).ticket {
			m.w.fail("%s, with a later ticket, overtakes %s", name, other.name)
		}
	}
	for _, j := range m.java {
		deadline, _ := strconv.ParseInt(m.deadlines.Fields[j.owner], 10, 64)
		before := slices.Index(m.queue.List, j.owner)
		if m.waits[j] && deadline > m.w.ms() && before >= 0 && (at < 0 && !ticketed || before < at) {
			m.w.fail("%s overtakes %s", name, j.name)
		}
	}
}

func (m *fairModel) actions() []modelAction {
	actions := m.lockModel.actions()
	actions = slices.DeleteFunc(actions, func(a modelAction) bool {
		return a.name == "java" || a.name == "damage" || a.name == "force"
	})
	return append(actions,
		modelAction{"refresh", 25, m.refresh},
		modelAction{"java", 20, m.javaActs},
		modelAction{"damage", 2, m.damage},
		modelAction{"force", 1, m.force})
}

// refresh sends signs of life for the waiters of a client.
func (m *fairModel) refresh(d dice) {
	c := m.w.clients[d[0]%len(m.w.clients)]
	var places []*waiters.Waiter
	var parties []*party
	names := ""
	for _, p := range m.parties {
		if f := m.waiter(p); f != nil && f.ticket > 0 && p.lock.Client == c {
			places, parties = append(places, p.inQueue), append(parties, p)
			names += p.name + " "
		}
	}
	if places == nil {
		return
	}
	b := fair.QueuesOf(c).Waiters.NewRefreshing()
	b.Add(places)
	msg := &message{what: names + "alive", words: m.w.words(b.Call), light: true, silent: func() {}}
	msg.answered = func(reply any) {
		states, is := reply.([]any)
		if !is || len(states) != len(places) {
			m.w.fail("%s: %v", msg.what, reply)
		}
		for i, p := range parties {
			f := m.waiter(p)
			switch {
			case states[i] != int64(0):
				f.sign, f.broken = msg.sent/1000, false
			default: // it must try again to get its place
				f.sign, f.asked, f.broken = 0, 0, true
			}
		}
	}
	m.w.send(msg, d.fate())
}

func (m *fairModel) javaActs(d dice) {
	j, k := m.java[d[0]%len(m.java)], m.lock.Names
	switch {
	case d[1]%20 == 0:
		j.crash()
		m.waits[j] = false
	case j.count > 0 && d[1]%3 == 0:
		j.renew(k)
	case j.count > 0 && d[1]%3 == 1:
		certain := j.holds()
		j.released(certain, j.fair("unlocks", javaFairUnlock, k))
	case m.waits[j] && d[1]%9 == 2:
		j.fair("cancels", javaFairCancel, k)
		m.waits[j] = false
	case m.waits[j] || d[2]%3 > 0:
		m.javaTakes(j, j.fair("locks", javaFairLock, k), true)
	default:
		m.javaTakes(j, j.fair("tries to lock", javaFairTry, k), false)
	}
}

func (m *fairModel) javaTakes(j *javaThread, reply any, waits bool) {
	if reply == nil && m.before.TTL == -2 {
		m.overtakes(j.name, j.owner, nil)
	}
	m.waits[j] = waits && reply != nil
	j.granted(reply)
}

// damage deletes keys. Without the notes all waiters keep their places. A waiter that lost its
// place in another way gets it back when it tries again.
func (m *fairModel) damage(d dice) {
	keys := m.lock.Names.FairKeys()
	i := d[0] % 7
	switch {
	case i < 4:
		m.w.say("%s is deleted", keys[i])
		m.w.Must("DEL", keys[i])
	case i < 6:
		i = 3
		m.w.say("%s is deleted", keys[i])
		m.w.Must("DEL", keys[i])
	default:
		m.w.say("all is deleted")
		m.w.Must("FLUSHALL")
	}
	if i == 0 || i == 6 {
		m.excuse()
	}
	if i == 3 || i == 6 {
		m.lost = true
		for _, f := range m.waiters {
			f.odd = f.odd || f.ticket == 0
		}
	}
	if i == 3 || i == 0 {
		return
	}
	m.torn = true
	for _, f := range m.waiters {
		f.broken = true
		f.odd = f.odd || f.ticket == 0 // it may be in the queue twice, and be granted the lock in its first place
	}
	clear(m.waits)
}

func (m *fairModel) check() {
	before := m.before
	m.lockModel.check()
	m.grants(before)
	all := m.w.State(m.lock.Names.FairKeys()[1:]...)
	m.queue, m.deadlines, m.notes = all[0], all[1], all[2]
	m.lost = m.lost && len(m.queue.List) > 0
	if m.torn = m.torn && len(m.queue.List)+len(m.deadlines.List) > 0; !m.torn && len(m.queue.List) != len(m.deadlines.List) {
		m.w.fail("the queue has %v, and the deadlines have %v", m.queue.List, m.deadlines.List)
	}
	for _, p := range m.parties {
		if f := m.waiter(p); f != nil && f.ticket > 0 && m.noted(p.t.Wire) > f.ticket {
			f.odd = true
		}
		if !m.live(p) || slices.Contains(m.queue.List, p.t.Wire) {
			continue
		}
		if m.before.Count(p.t.Wire) > 0 { // by a late copy of its attempts
			m.waiters[p].sign, m.waiters[p].asked = 0, 0
		} else {
			m.w.fail("%s has lost its place, %d ms after its last sign of life", p.name, m.w.ms()-m.waiters[p].sign)
		}
	}
	m.muddled = m.muddled && len(m.queue.List) > 0
	for _, f := range m.waiters {
		m.muddled = m.muddled || f.odd
	}
	m.ordered()
}

// ordered checks that live waiters are in order of arrival, as soon as the server knows that order.
func (m *fairModel) ordered() {
	if m.muddled {
		return
	}
	var last *party
	for _, owner := range m.queue.List {
		for _, p := range m.parties {
			if p.t == nil || p.t.Wire != owner || !m.live(p) || m.noted(owner) == 0 {
				continue
			}
			if last != nil && m.waiters[last].ticket > m.waiters[p].ticket {
				m.w.fail("%s is queued before %s, who came first: %v", last.name, p.name, m.lineUp())
			}
			last = p
		}
	}
}

// lineUp names the waiters in the queue.
func (m *fairModel) lineUp() (names []string) {
	for _, owner := range m.queue.List {
		name := "somebody"
		for _, p := range m.parties {
			if p.t != nil && p.t.Wire == owner {
				name = p.name
			}
		}
		for _, j := range m.java {
			if j.owner == owner {
				name = j.name
			}
		}
		names = append(names, name)
	}
	return names
}

// finish lets every waiter have its turn.
func (m *fairModel) finish() {
	for len(m.w.late) > 0 {
		m.w.deliver(0)
		m.check() // two late copies may make a waiter the owner and put another behind it
	}
	for _, j := range m.java {
		if slices.Contains(m.queue.List, j.owner) {
			j.fair("cancels", javaFairCancel, m.lock.Names)
		}
		j.crash()
	}
	clear(m.waits)
	waiting := func(p *party) bool { return p.t != nil && p.phase == ownership.Acquiring }
	for turn := 0; slices.ContainsFunc(m.parties, waiting); turn++ {
		if turn > 1000 {
			m.w.fail("nobody is granted the lock for more than an hour: %v", m.lineUp())
		}
		for _, p := range m.parties {
			switch {
			case waiting(p):
				p.sendAttempt(0)
			case p.t != nil:
				p.leave()
			case len(p.toUndo) > 0:
				p.undo(0, 0)
			}
			m.check()
		}
		m.w.advance(4000)
	}
	m.w.settleAll(m.parties, m.java)
	m.advanceDeadlines()
	m.w.nothingLeft(m.lock.Names.FairKeys()[2])
}

// advanceDeadlines makes one attempt, which removes all dead waiters from the queue and acquires
// the lock.
func (m *fairModel) advanceDeadlines() {
	p := m.parties[0]
	p.want(modelLeases[1], false, 0)
	if p.t == nil {
		m.w.fail("%s is refused when all others are gone: %v", p.name, m.w.State(m.lock.Names.FairKeys()...))
	}
	p.leave()
}
