package handover

import "github.com/latchkey-go/latchkey/tests/handover/explore"

// Bounds of the model. A state that exceeds them ends the exploration with a panic.
const (
	clients = explore.Clients
	places  = 5  // in the queue
	room    = 11 // for messages in flight
)

// owner is a name that a client uses for one turn and never again: the client and a number.
type owner uint8

const (
	nobody   owner = 0
	stranger owner = 255
)

func ownerOf(c int, number uint8) owner { return owner(c*16+int(number)) + 1 }

func (o owner) client() int   { return int(o-1) / 16 }
func (o owner) number() uint8 { return uint8(o-1) % 16 }

// renamed returns the owner with another name for its client.
func (o owner) renamed(names explore.Order) owner {
	if o == nobody || o == stranger {
		return o
	}
	return ownerOf(names[o.client()], o.number())
}

// phase is what a client does with its current owner.
type phase uint8

const (
	idle phase = iota // nobody wants the lock
	waiting
	holding
	dead
)

// client is everything that one process remembers. Its line of goroutines is the number of
// acquisitions left: the first of them waits or holds.
type client struct {
	phase   phase
	left    uint8
	number  uint8 // of the current owner; all lower ones are used up
	born    uint8 // the first number of this process
	valid   uint8 // ticks for which the client relies on the hold
	token   int8  // the server's counter minus the token of the hold
	turn    uint8 // ticks left of the turn
	since   uint8 // waiting: ticks since the first ask of this owner, at most those of a grant
	place   uint8 // waiting: since when it was in the queue at its last refusal there, or 0
	seen    uint8 // waiting: ticks since the ask that was refused
	alarm   uint8 // waiting: ticks until it asks because of a hint, 0 if there was none
	again   bool  // waiting: a reason to ask came while an ask was in flight
	deaf    bool  // not subscribed
	foreign bool  // subscribed to the channel of strangers
	poller  bool  // never subscribed
	soon    bool  // waiting: it was told that it is the first, and asks soon
	repeats bool  // waiting: the release that named this owner as next has not been answered
}

// state is everything: server, network, clients, and what the properties have to remember. Time and
// tokens are relative, so that the number of states is finite.
type state struct {
	owner   owner // of the lock
	ttl     uint8 // ticks until the lock expires
	brief   bool  // the server last set the lease of a grant
	queue   [places]owner
	times   [places]uint8 // since when they are there: numbers that distinguish the places of one owner
	soon    owner         // the poller that is first and about to ask, or nobody
	flight  [room]message // sorted, so that the order does not distinguish states
	clients [clients]client

	strangerPhase phase
	strangerLeft  uint8

	faults       uint8 // that may still happen
	withoutQueue uint8 // commands that may still run without the queue
	calm         bool  // nothing was lost so far, no client died, and the lock has never expired
	told         bool  // nothing but grants was lost so far
	sure         bool  // nothing but answers to releases was lost so far
	high         int8  // the server's counter minus the largest token used
	run          owner // the owner of the last holds
	lasts        uint8 // ticks since the first of them began
}

// living reports whether the process that made the owner is running.
func (s *state) living(o owner) bool {
	c := &s.clients[o.client()]
	return c.phase != dead && o.number() >= c.born
}

// current reports whether the owner is the current one of its client.
func (s *state) current(o owner) bool {
	return s.living(o) && o.number() == s.clients[o.client()].number
}

// mine returns the current owner of a client.
func (s *state) mine(c int) owner { return ownerOf(c, s.clients[c].number) }

func (s *state) place(o owner) int {
	for i, e := range s.queue {
		if e == o {
			return i
		}
	}
	return -1
}

// enqueue puts an owner at the end of the queue if it is not there. An entry never changes.
func (s *state) enqueue(m *Model, o owner) {
	if s.place(o) >= 0 {
		return
	}
	i := s.place(nobody)
	if i < 0 {
		panic("the queue of the model is too short")
	}
	s.queue[i], s.times[i] = o, s.newTime(m, o)
}

// newTime returns a time for a new place of the owner in the queue, which nobody still knows.
func (s *state) newTime(m *Model, o owner) uint8 {
	if !m.Since || !s.current(o) {
		return 0
	}
	for t := uint8(1); ; t++ {
		if m.Fault == PlaceKeepsTime || !s.knownTime(o, t) {
			return t
		}
	}
}

// knownTime reports whether anybody knows of a place that the owner, which is not in the queue, had
// since that time.
func (s *state) knownTime(o owner, t uint8) bool {
	for _, f := range s.flight {
		if f.owner == o && f.since == t {
			return true
		}
	}
	return s.clients[o.client()].place == t
}

// leaveQueue removes an owner and reports whether it was the first.
func (s *state) leaveQueue(o owner) (first bool) {
	i := s.place(o)
	if i < 0 {
		return false
	}
	if s.soon == o {
		s.soon = nobody
	}
	copy(s.queue[i:], s.queue[i+1:])
	copy(s.times[i:], s.times[i+1:])
	s.queue[places-1], s.times[places-1] = nobody, 0
	return i == 0
}

// polls reports whether the client of an owner asks instead of listening.
func (s *state) polls(o owner) bool { return s.clients[o.client()].poller }

// firstListener returns the first of the queue that is no poller, or nobody.
func (s *state) firstListener() owner {
	for _, o := range s.queue {
		if o == nobody || !s.polls(o) {
			return o
		}
	}
	return nobody
}

// done reports whether nobody wants the lock any more. If prompt is true, pollers that wait do not
// count.
func (s *state) done(prompt bool) bool {
	for i := range s.clients {
		if c := &s.clients[i]; prompt && c.poller && c.phase != holding {
			continue
		} else if c := &s.clients[i]; c.left > 0 && c.phase != dead || c.phase == holding {
			return false
		}
	}
	return s.strangerLeft == 0 || s.strangerPhase == dead
}

// far is a token so old that its age makes no difference.
const far = 4

// issue advances the server's counter.
func (s *state) issue() {
	s.high = min(s.high+1, far)
	for i := range s.clients {
		if c := &s.clients[i]; c.phase == holding {
			c.token = min(c.token+1, far)
		}
	}
	for i := range s.flight {
		if m := &s.flight[i]; m.kind == granted {
			m.token = min(m.token+1, far)
		}
	}
}
