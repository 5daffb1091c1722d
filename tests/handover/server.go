package handover

import "slices"

// This file has the scripts. Each is atomic. Where a script has several outcomes, for example
// whether a server still counts the subscription of a dead client, it calls yield for each.

// ask is the script that acquires the lock for an owner, or puts the owner into the queue.
func (m *Model) ask(s state, c message, yield func(state)) {
	switch {
	case s.owner == c.owner && m.Fault != NoOwnGrantSeen:
		s.ttl, s.brief = max(s.ttl, m.Lease), false
		s.answerGranted(c)
	case s.owner == nobody && (!m.Fair || s.queue[0] == nobody || s.queue[0] == c.owner):
		s.leaveQueue(c.owner)
		s.own(c.owner, m.Lease, true)
		s.answerGranted(c)
	case s.owner == nobody: // in order: the first gets it, no matter which owner asks
		s.enqueue(m, c.owner)
		m.grant(s, message{}, yield)
		return // if the owner itself is first, the message is the answer
	default:
		if s.owner != c.owner {
			s.enqueue(m, c.owner)
		}
		s.answerRefused(m, c)
	}
	yield(s)
}

// release is the script that releases the lock and grants it to the first of the queue. It also
// takes its owner out of the queue, so it serves to leave the queue and to undo as well.
func (m *Model) release(s state, c message, yield func(state)) {
	first := s.leaveQueue(c.owner)
	freed := s.owner == c.owner || s.owner != nobody && m.Fault == ReleaseOfAnyOwner
	if freed {
		s.owner, s.ttl = nobody, 0
	}
	if c.next != nobody && (freed || m.Fault == WaitsInLateRelease) {
		s.enqueue(m, c.next)
	}
	if c.next != nobody && !freed {
		s.answerRelease(c, freed)
	}
	if s.owner != nobody {
		if first && m.Fault != NoHintOnLeave && (s.brief || s.owner == stranger) {
			s.hintFirst(m, s.ttl)
		}
		yield(s)
		return
	}
	answered := c.next == nobody || !freed
	if freed && s.strangerPhase == waiting { // an open release
		o := s
		o.hintFirst(m, 0)
		if !answered {
			o.answerRelease(c, true)
		}
		yield(o)
	}
	m.grant(s, c, func(n state) {
		if !answered && n.owner != c.next {
			n.answerRelease(c, true)
		}
		if freed && m.WithoutQueue > 0 && n.owner == nobody {
			n.tellStrangers()
		}
		yield(n)
	})
}

// withoutQueue executes an ask or a release without the queue, because its key cannot be used, for
// example while it moves to another node.
func (m *Model) withoutQueue(s state, c message) state {
	s.withoutQueue--
	switch {
	case c.kind == release:
		s.releaseAlone(m, c)
	case s.owner == c.owner:
		s.ttl, s.brief = max(s.ttl, m.Lease), false
		s.answerGranted(c)
	case s.owner == nobody: // its places stay
		s.own(c.owner, m.Lease, true)
		s.answerGranted(c)
	default: // it learns of the lock as strangers do
		s.send(message{kind: refused, owner: c.owner, foreign: m.Fault != WithoutQueueWaits})
	}
	return s
}

// releaseAlone is a release without the queue. The waiters in it get no message, and have to poll.
func (s *state) releaseAlone(m *Model, c message) {
	if c.next != nobody {
		s.answerRelease(c, m.Fault == WithoutQueueIgnored)
	}
	if s.owner != c.owner {
		return
	}
	s.owner, s.ttl = nobody, 0
	if s.queue[0] != nobody {
		s.calm, s.told = false, false
	}
	s.tellStrangers()
}

// tellStrangers notifies the clients that listen as strangers do that the lock is free.
func (s *state) tellStrangers() {
	for i := range s.clients {
		h := message{kind: hint, owner: s.mine(i)}
		if c := &s.clients[i]; c.foreign && c.phase == waiting && !c.deaf && !slices.Contains(s.flight[:], h) {
			s.send(h)
		}
	}
}

// grant grants a free lock to the first of the queue that listens, or that polls and is about to
// ask. The answer to a release says that its next owner has the lock, so that one has the whole
// lease.
func (m *Model) grant(s state, c message, yield func(state)) {
	i := m.firstGrantable(&s)
	if i < 0 {
		yield(s)
		return
	}
	o, since := s.queue[i], s.times[i]
	if m.Fault != GrantKeepsEntry {
		s.leaveQueue(o)
	}
	if o == c.next && o != nobody {
		s.own(o, m.Lease, true)
		s.send(message{kind: granted, owner: o, age: c.age})
		yield(s)
		return
	}
	if !s.hears(o) && !s.polls(o) { // no receivers: the next one
		m.grant(s, c, yield)
	}
	s.own(o, m.Short, m.Fault != TokenNotIssued)
	s.brief = true
	if s.hears(o) {
		s.send(message{kind: granted, owner: o, since: since, message: true})
	} // otherwise the connection still counts, and the message is lost; or it polls
	if m.Fault != NoHintOfGrant {
		s.hintFirst(m, m.Short)
	}
	yield(s)
}

// firstGrantable returns the index of the first of the queue that may be granted the lock, or -1.
// It passes over pollers, which keep their places, except one that is about to ask.
func (m *Model) firstGrantable(s *state) int {
	for i, o := range s.queue {
		switch {
		case o == nobody:
			return -1
		case !s.polls(o) || s.soon == o || m.Fault == PollerGrantedAtHead:
			return i
		}
	}
	return -1
}

// renew is the script that extends the lease of an owner.
func (m *Model) renew(s state, c message, yield func(state)) {
	switch {
	case s.owner == c.owner:
		s.ttl, s.brief = max(s.ttl, m.Lease), false
		s.send(message{kind: renewed, owner: c.owner, age: c.age})
	case s.owner == nobody && m.Fault == RenewalRevives:
		s.own(c.owner, m.Lease, true)
		s.send(message{kind: renewed, owner: c.owner, age: c.age})
	default:
		s.send(message{kind: denied, owner: c.owner})
	}
	yield(s)
}

// own makes an owner the owner of a free lock, and issues its token.
func (s *state) own(o owner, lease uint8, issues bool) {
	s.owner, s.ttl, s.brief = o, lease, false
	if issues {
		s.issue()
	}
}

// answerGranted sends the owner of the lock its token: the last that was issued.
func (s *state) answerGranted(c message) {
	s.send(message{kind: granted, owner: c.owner, age: c.age})
}

// answerRelease answers a release that names a next owner: whether that owner waits.
func (s *state) answerRelease(c message, waits bool) {
	a := message{kind: unqueued, owner: c.next}
	if waits {
		a.kind = queued
	}
	s.send(a)
}

// answerRefused sends a waiting owner the time at which the lock expires, if that is the lease of a
// grant. For other leases the model has polls.
func (s *state) answerRefused(m *Model, c message) {
	a := message{kind: refused, owner: c.owner, foreign: s.owner == stranger}
	if s.brief {
		a.in = s.ttl
	}
	if i := s.place(c.owner); i >= 0 && m.Since {
		a.since = s.times[i]
	}
	if m.Fault == RefusedMovesStamp || a.since != 0 {
		a.age = min(c.age, m.Short)
	}
	if s.polls(c.owner) && s.queue[0] == c.owner {
		s.soon, a.soon = c.owner, true
		s.calm = s.calm && s.current(c.owner) // a late ask costs the lease of a grant: nobody tells a poller
	}
	s.send(a)
}

// hears reports whether the client of an owner gets its messages.
func (s *state) hears(o owner) bool { return s.living(o) && !s.clients[o.client()].deaf && !s.polls(o) }

// hintFirst notifies the first of the queue to ask now, or in that many ticks. A second hint adds
// nothing to a hint in flight. A hint that only sets an alarm takes no time: the model already has
// polls at any time, and checks only whether there is an alarm.
func (s *state) hintFirst(m *Model, in uint8) {
	h := message{kind: hint, owner: s.firstListener(), in: in}
	switch {
	case h.owner == nobody || !s.hears(h.owner) || m.Fault == NoHint:
	case in > 0:
		m.hears(s, h) // at once: polls may come at any time anyway
	case !slices.Contains(s.flight[:], h):
		s.send(h)
	}
}
