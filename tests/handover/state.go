package handover

// Bounds of the model. What does not fit ends the exploration with a panic.
const (
	clients = 3
	places  = 5 // in the queue
	room    = 8 // for what is in flight
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
	passes  uint8 // how often the ownership may still be passed on in this turn
	turn    uint8 // ticks that are left of the turn
	asked   uint8 // ticks since it last asked; only faulty clients look at it
	deaf    bool  // not subscribed
	foreign bool  // subscribed to the channel of strangers
}

// entry is a place in the queue on the server.
type entry struct {
	owner owner
	age   uint8 // ticks since the ask was sent that last stamped the entry
}

// state is everything: server, network, clients, and what the properties have to remember.
// Time and tokens are relative, so that there are finitely many states.
type state struct {
	owner   owner // of the lock
	ttl     uint8 // ticks until the lock expires
	queue   [places]entry
	flight  [room]message // sorted, so that the order does not tell states apart
	clients [clients]client

	strangerPhase phase
	strangerLeft  uint8

	faults uint8 // that may still happen
	calm   bool  // nothing was lost yet, no client died, and the lock has never expired
	high   int8  // the server's counter minus the largest token used
	run    owner // who has begun the last holds
	begun  uint8 // how many holds in a row
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
		if e.owner == o {
			return i
		}
	}
	return -1
}

// enqueue puts an owner at the end of the queue, or stamps the entry that it has.
func (s *state) enqueue(o owner, age uint8) {
	i := s.place(o)
	if i < 0 {
		i = s.place(nobody)
	}
	if i < 0 {
		panic("the queue of the model is too short")
	}
	s.queue[i] = entry{o, age}
}

// leaveQueue removes an owner and reports whether it was the first.
func (s *state) leaveQueue(o owner) (first bool) {
	i := s.place(o)
	if i < 0 {
		return false
	}
	copy(s.queue[i:], s.queue[i+1:])
	s.queue[places-1] = entry{}
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
