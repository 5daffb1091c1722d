package ownership

import (
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
)

// A goroutine that wants to read a lock that others of its client read joins them in memory, and
// sends nothing. For the server, the first of them reads until the last one has left.
//
// This lasts for one turn (Tuning.Turn), from when the server has admitted the first reader, which
// it does when no writer waits. So a writer waits only for the rest of that turn and for the
// readers that are inside then. The next reader needs the server.

// LetIn lets those in line in that the ownership may take along.
func (o *Ownership) LetIn(q *line.Line) {
	now := o.Client.Clock()
	o.mu.Lock()
	if !o.mayHaveOthers(now) {
		o.mu.Unlock()
		return
	}
	waiters := q.TakeAll(o)
	holds := make([]*Hold, len(waiters))
	for i := range waiters {
		holds[i] = o.takeAlong(now)
	}
	o.mu.Unlock()
	for i, w := range waiters {
		w.Pass(holds[i])
	}
}

// TakeAlongFor returns a hold for a request of this client that may read along, or nil.
func (o *Ownership) TakeAlongFor(r *request.Request) *Hold {
	now := o.Client.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.mayHaveOthers(now) || !o.Suits(r) {
		return nil
	}
	return o.takeAlong(now)
}

// takeAlong makes a hold for a waiter that is let in. o.mu is held.
func (o *Ownership) takeAlong(now lease.Stamp) *Hold {
	s := &Hold{Ownership: o, Item: hold.Item{Renew: o.Holds.Outermost().Renew, Acquired: now}}
	o.Holds.Join(&s.Item)
	o.Turn.Passed = true
	return s
}
