package permits

import "github.com/latchkey-go/latchkey/tests/handover/explore"

// Bounds of the model. A state that exceeds them ends the exploration with a panic.
const (
	clients = explore.Clients
	numbers = 4 // of the operations of one client
	places  = 5 // in the line on the server
	called  = 4 // marks
	room    = 12
)

// op names an acquisition: the client and a number that it uses for one wait and never again. It is
// the entry.
type op uint8

const none op = 0

func opOf(c int, number uint8) op { return op(c*8+int(number)) + 1 }

func (o op) client() int   { return int(o-1) / 8 }
func (o op) number() uint8 { return uint8(o-1) % 8 }

// renamed returns the operation with another name for its client.
func (o op) renamed(names explore.Order) op {
	if o == none {
		return o
	}
	return opOf(names[o.client()], o.number())
}

// phase is what a client does with its current operation.
type phase uint8

const (
	idle phase = iota // nobody in its line
	waiting
	holding
	dead
)

// note is what the server remembers of an operation.
type note uint8

const (
	unknown note = iota
	taken
	returned // taken, and the release was executed
	void     // given up: a late ask does nothing
)

// client is everything that one process remembers, and what the server has noted about it.
type client struct {
	phase   phase
	line    [2]uint8       // what its goroutines want; the first waits or holds
	number  uint8          // of the current operation; all lower ones are over
	born    uint8          // the first number of this process
	sizes   [numbers]uint8 // how many permits each operation wants
	notes   [numbers]note  // on the server
	leases  [numbers]uint8 // on the server: ticks left, of permits with ids
	valid   uint8          // holding: ticks for which it relies on permits with ids
	since   uint8          // waiting for such: ticks since the first ask, at most those of a grant
	ticket  uint8          // waiting: the place that the server has given, or 0
	pending uint8          // 1 + number of the operation that it releases or withdraws, until that is answered
	undoes  bool           // pending is a withdrawal
	again   bool           // waiting: a reason to ask came while an ask was in flight
	deaf    bool           // not subscribed
	foreign bool           // subscribed to the channel of strangers
	polls   bool           // never subscribed
	soon    bool           // waiting: it was told that it is the first, and asks soon
}

// entry is a place in the line.
type entry struct {
	op     op
	ticket uint8
	soon   bool // of a poller that is about to ask
	first  bool // of a large request that has asked as the first since the last bar ended
}

// mark says that permits are kept for an operation that was called.
type mark struct {
	op   op
	left uint8 // ticks, 0 if it is over
}

// state is everything: server, network, and clients. Only the order of tickets counts, so their
// number is finite.
type state struct {
	free     int8
	line     [places]entry // by ticket
	marks    [called]mark  // by operation
	bar      op            // the large request that barred the others last, or none
	barLeft  uint8         // ticks: opened while the bar is open, fewer while it rests
	base     uint8         // tickets from here on are from before the clock was set back; 0 if it was not
	flight   [room]message // sorted, so that the order does not distinguish states
	clients  [clients]client
	stranger phase

	strangersLeft uint8

	faults uint8 // that may still happen
	calm   bool  // nothing was lost so far, no client died, no mark was over
	told   bool  // no message was lost so far, and no client
}

// living reports whether the process that made the operation is running.
func (s *state) living(o op) bool {
	c := &s.clients[o.client()]
	return c.phase != dead && o.number() >= c.born
}

// waits reports whether a goroutine waits with the operation.
func (s *state) waits(o op) bool {
	c := &s.clients[o.client()]
	return c.phase == waiting && o.number() == c.number
}

// mine returns the current operation of a client.
func (s *state) mine(c int) op { return opOf(c, s.clients[c].number) }

// size returns how many permits an operation wants.
func (s *state) size(o op) int8 { return int8(s.clients[o.client()].sizes[o.number()]) }

// noted returns what the server has noted about an operation.
func (s *state) noted(o op) *note { return &s.clients[o.client()].notes[o.number()] }

// hears reports whether the client of an operation receives its messages.
func (s *state) hears(o op) bool {
	c := &s.clients[o.client()]
	return s.living(o) && !c.deaf && !c.polls
}

// place returns the place of an operation in the line, or -1.
func (s *state) place(o op) int {
	for i, e := range s.line {
		if e.op == o {
			return i
		}
	}
	return -1
}

// enter puts an operation into the line, with the ticket that it names, or keeps its place if that
// is older. A new ticket is the largest.
func (s *state) enter(o op, ticket uint8, keepsOld bool) {
	var e entry
	if i := s.place(o); i >= 0 {
		e = s.line[i]
	}
	switch {
	case e.op != none && (ticket == 0 || e.ticket <= ticket || keepsOld):
		return
	case ticket == 0:
		ticket = s.newTicket()
	}
	s.leaveLine(o)
	i := s.place(none)
	if i < 0 {
		panic("the line of the model is too short")
	}
	for ; i > 0 && s.line[i-1].ticket > ticket; i-- {
		s.line[i] = s.line[i-1]
	}
	e.op, e.ticket = o, ticket
	s.line[i] = e
}

// newTicket returns a ticket later than all that anybody knows, except those from before the clock
// was set back.
func (s *state) newTicket() uint8 {
	last := uint8(0)
	s.eachTicket(func(t *uint8) {
		if s.base == 0 || *t < s.base {
			last = max(last, *t)
		}
	})
	return last + 1
}

// eachTicket calls f for each ticket that anybody knows.
func (s *state) eachTicket(f func(*uint8)) {
	for i := range s.line {
		if s.line[i].op != none {
			f(&s.line[i].ticket)
		}
	}
	for i := range s.flight {
		if s.flight[i].ticket != 0 {
			f(&s.flight[i].ticket)
		}
	}
	for i := range s.clients {
		if s.clients[i].ticket != 0 {
			f(&s.clients[i].ticket)
		}
	}
}

// leaveLine removes an operation from the line.
func (s *state) leaveLine(o op) {
	if i := s.place(o); i >= 0 {
		copy(s.line[i:], s.line[i+1:])
		s.line[places-1] = entry{}
	}
}

// mark keeps permits for an operation.
func (s *state) mark(o op, left uint8) {
	s.unmark(o)
	i := called - 1
	if s.marks[i].op != none {
		panic("the model has too little room for marks")
	}
	for ; i > 0 && (s.marks[i-1].op == none || s.marks[i-1].op > o); i-- {
		s.marks[i] = s.marks[i-1]
	}
	s.marks[i] = mark{o, left}
}

// unmark removes the mark of an operation, and reports whether there was one.
func (s *state) unmark(o op) bool {
	for i, k := range s.marks {
		if k.op == o {
			copy(s.marks[i:], s.marks[i+1:])
			s.marks[called-1] = mark{}
			return true
		}
	}
	return false
}
