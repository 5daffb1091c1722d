package handover

import "fmt"

// kind is the kind of what is in flight: a command to the server, or an answer or a message to a
// client.
type kind uint8

const (
	nothing  kind = iota
	ask           // acquire, or enqueue
	release       // release and grant, leave the queue, undo: one script
	renew         // never shortens, never creates
	refused       // answer to ask: in the queue
	granted       // answer to ask, or the message of a grant
	renewed       // answer to renew
	denied        // answer to renew
	hint          // message: ask again
	queued        // answer to release: its next owner waits
	unqueued      // answer to release: it does not
)

var kindNames = [...]string{
	"nothing", "ask", "release", "renew", "refused", "granted", "renewed", "denied", "hint",
	"answer that it waits", "answer that it does not wait",
}

// message is anything in flight. It may take any time. The commands of a client, the answers to
// them, and the messages for it are each a line, which stays in order. A fault may lose the first
// of a line, deliver it twice, or take it out of the line.
type message struct {
	kind    kind
	owner   owner
	next    owner // release: the owner that is to wait instead
	age     uint8 // ticks since the command, or the command that it answers, was sent
	in      uint8 // hint: ticks until it is time; refused: ticks until the lease of a grant ends
	since   uint8 // refused, or granted by message: since when the owner is or was in the queue
	token   int8  // granted: the server's counter minus the token
	foreign bool  // refused: a stranger holds the lock
	message bool  // granted: by message, not by answer
	soon    bool  // refused: it is the first, and asks soon
	late    bool  // out of its line
}

func (m message) command() bool { return m.kind == ask || m.kind == release || m.kind == renew }

// line returns the line to which a message belongs. A late message belongs to none.
func (m message) line() int {
	switch {
	case m.late:
		return 1 << 10
	case m.command():
		return 4 * m.owner.client()
	case m.kind == hint || m.message:
		return 4*m.owner.client() + 1
	}
	return 4*m.owner.client() + 2
}

// less is the order in which messages in flight are kept: by line, and late messages by content.
func (m message) less(n message) bool {
	if l, k := m.line(), n.line(); l != k {
		return l < k
	}
	return m.late && m.key() < n.key()
}

func (m message) key() uint64 {
	k := uint64(m.kind)<<48 | uint64(m.owner)<<40 | uint64(m.next)<<32 | uint64(m.age)<<24 | uint64(m.in)<<16 |
		uint64(uint8(m.token))<<8 | uint64(m.since)<<2
	if m.foreign {
		k |= 1
	}
	if m.message {
		k |= 2
	}
	if m.soon {
		k |= 1 << 7
	}
	return k
}

// send puts a message in flight, in its place.
func (s *state) send(m message) {
	if s.flight[room-1].kind != nothing {
		panic(fmt.Sprintf("the model has too little room for %v and %v in flight", m, s.flight))
	}
	i := room - 1
	for ; i > 0 && (s.flight[i-1].kind == nothing || m.less(s.flight[i-1])); i-- {
		s.flight[i] = s.flight[i-1]
	}
	s.flight[i] = m
}

// take removes the message in flight at an index.
func (s *state) take(i int) message {
	m := s.flight[i]
	copy(s.flight[i:], s.flight[i+1:])
	s.flight[room-1] = message{}
	return m
}

// next reports whether the message in flight at an index can be delivered.
func (s *state) next(i int) bool {
	f := s.flight[i]
	switch {
	case f.kind == nothing:
		return false
	case f.late:
		return i == 0 || f != s.flight[i-1]
	}
	return i == 0 || s.flight[i-1].line() != f.line()
}

// flying reports whether a message of one of the kinds is in flight for an owner and not late.
func (s *state) flying(o owner, kinds ...kind) bool {
	for _, m := range s.flight {
		for _, k := range kinds {
			if m.kind == k && m.owner == o && !m.late {
				return true
			}
		}
	}
	return false
}

// asking reports whether an owner awaits the answer to an ask.
func (s *state) asking(o owner) bool {
	for _, m := range s.flight {
		if m.owner == o && !m.late && (m.kind == ask || m.kind == refused || m.kind == granted && !m.message) {
			return true
		}
	}
	return false
}

// mayPoll bounds the model: while one grant is in flight to it, a client polls only if that grant
// has expired, and while two are, it does not poll.
func (s *state) mayPoll(o owner) bool {
	n := 0
	for _, m := range s.flight {
		if m.owner == o && m.kind == granted && m.message {
			n++
		}
	}
	return n == 0 || n == 1 && s.owner != o && s.place(o) < 0
}

// useless reports whether the delivery of an answer or a message would change nothing.
func (m *Model) useless(s *state, f message) bool {
	if f.kind == nothing || f.command() {
		return false
	}
	if !s.living(f.owner) {
		return true
	}
	c := &s.clients[f.owner.client()]
	switch f.kind {
	case refused, hint, queued, unqueued:
		return !s.current(f.owner) || c.phase != waiting
	case renewed, denied:
		return !s.current(f.owner) || c.phase != holding
	case granted:
		return s.current(f.owner) && c.phase == holding
	}
	return false
}
