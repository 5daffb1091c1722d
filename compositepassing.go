package latchkey

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// The hold of several locks is passed on as that of one is (passing.go): the release ends the hold
// of each member and puts the next one in its place, and nothing is sent.

// groupRecipient is who waits in line for a composite hold.
type groupRecipient interface {
	recipient

	// takes reports whether what is held at a place is what it wants there. The mutex of the
	// ownership is held.
	takes(place int, o *ownership) bool
	// successor makes the hold that is to be passed to it, still without members.
	successor() *compositeHold
}

// beginTurn begins the turns of the members when the last one is there.
func (c *compositeHold) beginTurn() {
	for _, h := range c.present() {
		if s, is := h.inner().(*holdState); is {
			s.ownership.beginTurnAnew(s)
		}
	}
}

// stand has those of this program who want the lock wait in line until the hold is over.
func (c *compositeHold) stand(q *waitQueue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.active() {
		q.done()
		return
	}
	q.holdBegan()
	c.queue = q
	for _, h := range c.members {
		if h != nil {
			tellLine(h, q)
		}
	}
}

// tellLine tells a member in which line others wait for the whole.
func tellLine(h *Hold, q *waitQueue) {
	if s, is := h.inner().(*holdState); is {
		s.ownership.makeRare().group.Store(q)
	}
}

// leaveLine has the next in line ask the servers. It learns for how long this program had the
// lock. The hold is over, or it is not known whether.
func (c *compositeHold) leaveLine() {
	if q := c.moveLine(nil); q != nil {
		q.holdReleased(time.Since(c.granted))
	}
}

// moveLine has another hold stand in line, or nobody, and returns the line.
func (c *compositeHold) moveLine(to *compositeHold) *waitQueue {
	c.mu.Lock()
	q := c.queue
	c.queue = nil
	c.mu.Unlock()
	if to != nil {
		to.mu.Lock()
		to.queue = q
		to.mu.Unlock()
	}
	return q
}

// countDown has the hold leave the line when so many members have been released that another can
// have enough: nobody in line waits for servers that are silent.
func (c *compositeHold) countDown(release func(*Hold) error) func(*Hold) error {
	var released atomic.Int32
	return func(h *Hold) error {
		err := release(h)
		if err == nil && int(released.Add(1)) == c.need {
			c.leaveLine()
		}
		return err
	}
}

// passOn passes the hold to the first in line, if each member may be passed on, and reports whether
// it has. Its release has begun; if it is not passed on, members are those to be released.
func (c *compositeHold) passOn(members []*Hold) bool {
	to, q := c.recipient()
	if to == nil || !c.mayPassTo(to, members) {
		return false
	}
	next := to.successor()
	next.allAnswered, next.granted, next.current = c.allAnswered, c.granted, c.current
	left := slices.Clone(members)
	for i, h := range members {
		if h == nil {
			continue
		}
		if s := succeed(h, i, to); s != nil {
			members[i], left[i] = newHold(s), nil
			next.add(i, members[i])
		}
	}
	c.moveLine(next)
	var w *waiter
	if next.begin() == nil {
		w = q.takeFirst(to)
	}
	if w == nil { // it has left, or members are not what they were a moment ago
		c.takeBack(next, members)
		return false
	}
	c.mu.Lock()
	c.reported, c.released = true, true
	c.mu.Unlock()
	c.current.Store(next)
	giveBack(context.Background(), left, 0) // whatever was being sent for them
	w.pass(next)
	return true
}

// recipient returns the first in line, and the line; or nil, if nothing is to be passed on.
func (c *compositeHold) recipient() (groupRecipient, *waitQueue) {
	c.mu.Lock()
	q, confined := c.queue, c.confined != nil
	c.mu.Unlock()
	if q == nil || confined {
		return nil, nil
	}
	first, _ := q.first().(groupRecipient)
	return first, q
}

// mayPassTo reports whether each member may be passed on, and is what the recipient wants.
func (c *compositeHold) mayPassTo(to groupRecipient, members []*Hold) bool {
	return !slices.ContainsFunc(indexes(members), func(i int) bool {
		if members[i] == nil {
			return false
		}
		s, is := members[i].inner().(*holdState)
		if !is {
			return true
		}
		o := s.ownership
		o.mu.Lock()
		defer o.mu.Unlock()
		return !o.mayPass(s, o.lock.client.clock()) || !to.takes(i, o)
	})
}

// succeed returns what follows the hold of a member, or nil.
func succeed(h *Hold, place int, to groupRecipient) *holdState {
	s := h.inner().(*holdState)
	return s.ownership.succeed(s, func() bool { return to.takes(place, s.ownership) })
}

// takeBack has the hold release what was to be passed on.
func (c *compositeHold) takeBack(next *compositeHold, members []*Hold) {
	next.beginRelease()
	next.moveLine(c)
	c.mu.Lock()
	copy(c.members, members)
	c.mu.Unlock()
}

// adopt makes a member of a hold that came late, or of the one that it has been passed on to. It
// reports false if that is over, and the member is to be released.
func (c *compositeHold) adopt(i int, h *Hold) bool {
	for {
		current := c.current.Load()
		if current.add(i, h) {
			return true
		}
		if c.current.Load() == current {
			return false
		}
	}
}
