package handover

// This file has the steps that no client chooses: time, delivery, faults, and strangers.

// tick lets the smallest unit of time pass, for all clocks at once. A message may stay in flight
// for any number of ticks.
func (m *Model) tick(s state) state {
	if s.owner != stranger && s.ttl > 0 {
		if s.ttl--; s.ttl == 0 {
			s.owner, s.calm = nobody, false
		}
	}
	s.lasts = min(s.lasts+1, m.Turn)
	old := s.flight
	s.flight = [room]message{}
	for _, f := range old {
		switch f.kind {
		case nothing:
			continue
		case ask, renew, renewed, release:
			f.age = min(f.age+1, m.Lease)
		case granted:
			if !f.message {
				f.age = min(f.age+1, m.Lease)
			}
		case refused:
			if m.Fault == RefusedMovesStamp || f.since != 0 {
				f.age = min(f.age+1, m.Short)
			}
		}
		s.send(f)
	}
	for i := range s.clients {
		m.age(&s, i)
	}
	return s
}

// age lets a tick pass for a client. A client whose time to ask has come asks.
func (m *Model) age(s *state, i int) {
	c := &s.clients[i]
	switch c.phase {
	case waiting:
		c.since = min(c.since+1, m.Short)
		if c.place != 0 {
			c.seen = min(c.seen+1, m.Short)
		}
		if c.alarm > 0 {
			if c.alarm--; c.alarm == 0 && s.mayPoll(s.mine(i)) {
				m.call(s, i)
			}
		}
	case holding:
		c.turn -= min(c.turn, 1)
		if c.valid--; c.valid == 0 {
			m.lose(s, i)
		}
	}
}

// deliver executes a command, or hands an answer or a message to its client.
func (m *Model) deliver(s state, f message, yield func(string, state)) {
	each := func(n state) { yield("", n) }
	switch f.kind {
	case ask:
		m.ask(s, f, each)
	case release:
		m.release(s, f, each)
	case renew:
		m.renew(s, f, each)
	default:
		wrong := m.hears(&s, f)
		yield(wrong, s)
	}
}

// deliveries yields all possible deliveries, and what faults make of them.
func (m *Model) deliveries(s *state, yield func(step, state)) {
	for i, f := range s.flight {
		if !s.next(i) {
			continue
		}
		n := *s
		n.take(i)
		m.deliver(n, f, func(wrong string, n state) { yield(step{rule: delivers, item: f, wrong: wrong}, n) })
		if s.withoutQueue > 0 && (f.kind == ask || f.kind == release) {
			yield(step{rule: spares, item: f}, m.withoutQueue(n, f))
		}
		if s.faults == 0 {
			continue
		}
		n.faults--
		late := f
		late.late = true
		lost := n
		lost.calm, lost.told = false, lost.told && f.kind == granted && f.message
		answer := f.kind == queued || f.kind == unqueued || f.kind == granted && !f.message && s.current(f.owner)
		lost.sure = lost.sure && answer
		yield(step{rule: loses, item: f}, lost)
		n.send(late)
		if !f.late {
			yield(step{rule: delays, item: f}, n)
		}
		m.deliver(n, f, func(wrong string, n state) { yield(step{rule: doubles, item: f, wrong: wrong}, n) })
	}
}

// fault uses up one of the possible faults.
func (s *state) fault() { s.faults--; s.calm, s.sure = false, false }

// faults yields the faults of clients and of the server.
func (m *Model) faults(s *state, yield func(step, state)) {
	if s.faults == 0 {
		return
	}
	for i := range s.clients {
		c := s.clients[i]
		if c.phase == waiting || c.phase == holding {
			n := *s
			n.fault()
			n.clients[i].left--
			n.clients[i] = client{phase: dead, left: n.clients[i].left, number: c.number, born: c.born, poller: c.poller}
			yield(step{rule: crashes, client: i}, n)
		}
		if c.phase == waiting && !c.deaf && !c.poller {
			n := *s
			n.fault()
			n.clients[i].deaf, n.told = true, false
			yield(step{rule: disconnects, client: i}, n)
		}
	}
	if m.Failover {
		m.failovers(s, yield)
	}
}

// failovers yields failovers that lose the queue, or bring back an earlier entry.
func (m *Model) failovers(s *state, yield func(step, state)) {
	n := *s
	n.fault()
	n.told = false
	n.queue, n.times, n.soon = [places]owner{}, [places]uint8{}, nobody
	yield(step{rule: losesQueue}, n)
	for c := range s.clients {
		for number := uint8(0); number <= s.clients[c].number; number++ {
			o := ownerOf(c, number)
			unused := s.current(o) && s.clients[c].phase == idle
			if unused || s.place(o) >= 0 || s.queue[places-1] != nobody {
				continue
			}
			n := *s
			n.fault()
			n.told = false
			copy(n.queue[1:], s.queue[:])
			copy(n.times[1:], s.times[:])
			n.queue[0], n.times[0] = o, 0
			yield(step{rule: bringsBack, item: message{owner: o}}, n)
		}
	}
}

// strangers yields what a client that knows nothing of the queue does.
func (m *Model) strangers(s *state, yield func(step, state)) {
	n := *s
	switch {
	case s.strangerPhase == idle && s.strangerLeft > 0:
		n.strangerPhase = waiting
		yield(step{rule: strangerComes}, n)
	case s.strangerPhase == waiting && s.owner == nobody:
		n.strangerPhase, n.owner, n.ttl = holding, stranger, 0
		n.run, n.lasts, n.brief = nobody, 0, false
		yield(step{rule: strangerTakes}, n)
	case s.strangerPhase == holding:
		n.strangerPhase, n.owner = idle, nobody
		n.strangerLeft--
		n.tellStrangers()
		yield(step{rule: strangerReleases}, n)
	}
}
