package permits

import "fmt"

// kind is the kind of what is in flight: a command to the server, or an answer or a message to a
// client.
type kind uint8

const (
	nothing  kind = iota
	ask           // acquire, or enter the line
	release       // of permits
	withdraw      // leave the line, and undo
	leave         // leave the line only
	acquired      // answer to ask
	refused       // answer to ask: in the line
	answered      // answer to release or withdraw
	granted       // message: the operation has its permits
	call          // message: ask now, permits are kept for you
	hint          // message on the channel of strangers
)

var kindNames = [...]string{
	"nothing", "ask", "release", "withdrawal", "leave", "acquired", "refused", "answer",
	"grant", "call", "hint",
}

// message is anything in flight. It may take any time. The commands of a client, the answers to
// them, and the messages for it are each a line, which stays in order. A fault may lose the first
// of a line, deliver it twice, or take it out of the line.
type message struct {
	kind   kind
	op     op
	ticket uint8 // ask: the place that it had; refused: the place that it has
	soon   bool  // refused: it is the first
	age    uint8 // ticks since the ask, or the ask that it answers, was sent
	late   bool  // out of its line
}

func (f message) command() bool { return f.kind >= ask && f.kind <= leave }

// line returns the line to which a message belongs. A late message belongs to none.
func (f message) line() int {
	switch {
	case f.late:
		return 1 << 10
	case f.command():
		return 4 * f.op.client()
	case f.kind >= granted:
		return 4*f.op.client() + 1
	}
	return 4*f.op.client() + 2
}

// less is the order in which messages in flight are kept: by line, and late messages by content.
func (f message) less(g message) bool {
	if l, k := f.line(), g.line(); l != k {
		return l < k
	}
	return f.late && f.key() < g.key()
}

func (f message) key() uint32 {
	k := uint32(f.kind)<<24 | uint32(f.op)<<16 | uint32(f.ticket)<<8 | uint32(f.age)<<1
	if f.soon {
		k |= 1
	}
	return k
}

// send puts a message in flight, in its place.
func (s *state) send(f message) {
	if s.flight[room-1].kind != nothing {
		panic(fmt.Sprintf("the model has too little room for %v and %v in flight", f, s.flight))
	}
	i := room - 1
	for ; i > 0 && (s.flight[i-1].kind == nothing || f.less(s.flight[i-1])); i-- {
		s.flight[i] = s.flight[i-1]
	}
	s.flight[i] = f
}

// receive removes the message in flight at an index.
func (s *state) receive(i int) {
	copy(s.flight[i:], s.flight[i+1:])
	s.flight[room-1] = message{}
}

// first reports whether the message in flight at an index can be delivered.
func (s *state) first(i int) bool {
	f := s.flight[i]
	switch {
	case f.kind == nothing:
		return false
	case f.late:
		return i == 0 || f != s.flight[i-1]
	}
	return i == 0 || s.flight[i-1].line() != f.line()
}

// flying reports whether a message of one of the kinds is in flight for an operation and not late.
func (s *state) flying(o op, kinds ...kind) bool {
	for _, f := range s.flight {
		for _, k := range kinds {
			if f.kind == k && f.op == o && !f.late {
				return true
			}
		}
	}
	return false
}

// asking reports whether an operation awaits the answer to an ask.
func (s *state) asking(o op) bool { return s.flying(o, ask, refused, acquired) }

// mentioned reports whether anything in flight is about an operation.
func (s *state) mentioned(o op) bool {
	for _, f := range s.flight {
		if f.kind != nothing && f.op == o {
			return true
		}
	}
	return false
}

// useless reports whether the delivery of an answer or a message would change nothing.
func (m *Model) useless(s *state, f message) bool {
	if f.kind == nothing || f.command() {
		return false
	}
	if !s.living(f.op) {
		return true
	}
	c := &s.clients[f.op.client()]
	switch f.kind {
	case refused, hint:
		return !s.waits(f.op)
	case acquired, granted:
		over := f.op.number() < c.number || c.phase == idle
		return !s.waits(f.op) && !(over && m.Grants && m.Fault != UnwantedGrantKept)
	case call:
		return m.Fault == StrayCallIgnored && !s.waits(f.op)
	case answered:
		return c.pending != f.op.number()+1
	}
	return false
}
