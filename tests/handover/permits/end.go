package permits

import "slices"

// This file has the scripts that end a wait or a hold.

// ends executes what ends the wait or the hold of an operation.
func (m *Model) ends(x script, c message, yield func(script)) {
	switch {
	case m.Grants:
		m.giveBack(x, c, yield)
	case c.kind == release:
		m.release(x, c, yield)
	case c.kind == withdraw:
		m.withdraw(x, c, yield)
	default:
		m.leave(x, c, yield)
	}
}

// release is the script that gives permits of a plain semaphore back. The operation is noted before
// anything can fail.
func (m *Model) release(x script, c message, yield func(script)) {
	if *x.noted(c.op) != taken && m.Fault != NoNoteOfRelease {
		x.send(message{kind: answered, op: c.op})
		yield(x)
		return
	}
	x.free += x.size(c.op)
	*x.noted(c.op) = returned
	x.send(message{kind: answered, op: c.op})
	if x.stranger == waiting { // an open release
		o := x
		o.askFirst()
		yield(o)
	}
	m.serve(x, none, func(x script, _ bool) { yield(x) })
}

// askFirst tells the first of the line who listens to ask. Nothing is kept for it.
func (s *state) askFirst() {
	for _, e := range s.line {
		if e.op != none && s.hears(e.op) {
			if c := (message{kind: call, op: e.op}); !slices.Contains(s.flight[:], c) {
				s.send(c)
			}
			return
		}
	}
}

// withdraw is the script that gives up an operation, whatever has become of it.
func (m *Model) withdraw(x script, c message, yield func(script)) {
	m.forget(&x, c.op)
	if n := x.noted(c.op); *n == taken || *n == returned && m.Fault == UndoesForCall {
		x.free += x.size(c.op) // the note of the acquisition still names them
	}
	if m.Fault != NoNoteOfWithdrawal {
		*x.noted(c.op) = void
	} else {
		*x.noted(c.op) = unknown
	}
	x.send(message{kind: answered, op: c.op})
	if m.Fault == WithdrawalServesNobody {
		yield(x)
		return
	}
	m.serve(x, none, func(x script, _ bool) { yield(x) })
}

// leave is the script that removes an operation which is over from the line.
func (m *Model) leave(x script, c message, yield func(script)) {
	m.forget(&x, c.op)
	m.serve(x, none, func(x script, _ bool) { yield(x) })
}

// forget removes the entry and the mark of an operation.
func (m *Model) forget(x *script, o op) {
	x.leaveLine(o)
	if m.Fault != WithdrawalLeavesMark {
		x.unmark(o)
	}
}

// withoutServing is a release or a withdrawal that serves nobody, because a write or a message of
// it fails.
func (m *Model) withoutServing(s state, c message) state {
	switch o := c.op; {
	case m.Grants:
		s.goBack(o)
	case c.kind == release && *s.noted(o) == taken:
		s.free += s.size(o)
		if m.Fault == ServesBeforeNote {
			return s // no answer, either
		}
		*s.noted(o) = returned
	case c.kind == withdraw:
		s.leaveLine(o)
		s.unmark(o)
		if *s.noted(o) == taken {
			s.free += s.size(o)
		}
		*s.noted(o) = void
	}
	s.send(message{kind: answered, op: c.op})
	return s
}
