package handover

// Bounds of the model. What does not fit ends the exploration with a panic.
const (
	clients = 3
	places  = 5  // in the queue
	room    = 11 // for what is in flight
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

// phase is what a client does with its current owner.
type phase uint8

const (
	idle phase = iota // nobody wants the lock
	waiting
	holding
	dead
)

// client is all that one process remembers. Its line of goroutines is the number of
// acquisitions that are left: the first is the one that waits or holds.
type client struct {
	phase   phase
	left    uint8
	number  uint8 // of the current owner; all lower ones are used up
	born    uint8 // the first number of this process
	valid   uint8 // ticks for which the hold is relied on
	token   int8  // the server's counter minus the token of the hold
	passes  uint8 // tokens that are left of the turn
	turn    uint8 // ticks that are left of the turn
	since   uint8 // waiting: ticks since the first ask for this owner, at most those of a grant
	place   uint8 // waiting: since when it stood in the queue when it was last refused there, or 0
	seen    uint8 // waiting: ticks since the ask that was refused so
	alarm   uint8 // waiting: ticks until it asks because it was told to, 0 if it was not
	again   bool  // waiting: something has told it to ask while an ask was under way
	deaf    bool  // not subscribed
	foreign bool  // subscribed to the channel of strangers
}

// state is everything: server, network, clients, and what the properties have to remember.
// Time and tokens are relative, so that there are finitely many states.
type state struct {
	owner   owner // of the lock
	ttl     uint8 // ticks until the lock expires
	brief   bool  // what the server last set was the lease of a grant
	queue   [places]owner
	times   [places]uint8 // since when they stand there: numbers that tell the places of one owner apart
	flight  [room]message // sorted, so that the order does not tell states apart
	clients [clients]client

	strangerPhase phase
	strangerLeft  uint8

	faults uint8 // that may still happen
	spared uint8 // commands that may still go without the queue
	calm   bool  // nothing was lost yet, no client died, and the lock has never expired
	told   bool  // nothing was lost yet but grants
	high   int8  // the server's counter minus the largest token used
	run    owner // who has begun the last holds
	lasts  uint8 // ticks since the first of them began
}

// living reports whether the process that made the owner runs.
func (s *state) living(o owner) bool {
	c := &s.clients[o.client()]
	return c.phase != dead && o.number() >= c.born
}

// current reports whether the owner is the one that its client uses now.
func (s *state) current(o owner) bool {
	return s.living(o) && o.number() == s.clients[o.client()].number
}

// mine is the owner that a client uses now.
func (s *state) mine(c int) owner { return ownerOf(c, s.clients[c].number) }

func (s *state) place(o owner) int {
	for i, e := range s.queue {
		if e == o {
			return i
		}
	}
	return -1
}

// enqueue puts an owner at the end of the queue, if it is not there. An entry never changes.
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

// newTime is a time at which the owner comes into the queue: not one that anybody still knows.
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

// knownTime reports whether anybody knows that the owner, which is not in the queue, came there at
// that time.
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
	copy(s.queue[i:], s.queue[i+1:])
	copy(s.times[i:], s.times[i+1:])
	s.queue[places-1], s.times[places-1] = nobody, 0
	return i == 0
}

// done reports whether nobody wants the lock any more.
func (s *state) done() bool {
	for i := range s.clients {
		if c := &s.clients[i]; c.left > 0 && c.phase != dead || c.phase == holding {
			return false
		}
	}
	return s.strangerLeft == 0 || s.strangerPhase == dead
}

// reserve moves the server's counter on by n.
func (s *state) reserve(n int8, far int8) {
	s.high = min(s.high+n, far)
	for i := range s.clients {
		if c := &s.clients[i]; c.phase == holding {
			c.token = min(c.token+n, far)
		}
	}
	for i := range s.flight {
		if m := &s.flight[i]; m.kind == granted {
			m.token = min(m.token+n, far)
		}
	}
}
