package latchkey

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// The hold of a composite lock is passed on like that of one lock (passing.go): the release ends
// the hold of each member and puts the next hold in its place. Nothing is sent.

// compositeRecipient is a call that waits in line for a composite hold.
type compositeRecipient interface {
	recipient

	// takes reports whether the ownership of the member with that index is what the recipient wants
	// there. The caller holds the mutex of the ownership.
	takes(index int, o *ownership) bool
	// newHold makes the hold that will be passed to the recipient, still without members.
	newHold() *compositeHold
}

// beginTurn begins the turns of the members again when the last one is there.
func (c *compositeHold) beginTurn() {
	for _, h := range c.present() {
		if s, is := h.inner().(*holdState); is {
			s.ownership.beginTurnAnew(s)
		}
	}
}

// blockLine makes other goroutines of this program that want the lock wait in line until the hold is
// over.
func (c *compositeHold) blockLine(q *waitQueue) {
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
			setMemberLine(h, q)
		}
	}
}

// setMemberLine records in a member the line in which others wait for the whole.
func setMemberLine(h *Hold, q *waitQueue) {
	if s, is := h.inner().(*holdState); is {
		s.ownership.makeRare().compositeQueue.Store(q)
	}
}

// leaveLine lets the next in line try to acquire from the servers. The line learns how long this
// program had the lock. The hold is over, or it is unknown whether it is.
func (c *compositeHold) leaveLine() {
	if q := c.moveLine(nil); q != nil {
		q.holdReleased(time.Since(c.grantedAt))
	}
}

// moveLine moves the line to another hold, or to none, and returns the line.
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

// countDown makes the hold leave the line as soon as enough members have been released for
// another call to get the lock. Calls in line then do not wait for silent servers.
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

// passOn passes the hold to the first in line if each member may be passed on, and reports
// whether it did. The release of the hold has begun. If passOn returns false, members are the
// holds to release.
func (c *compositeHold) passOn(members []*Hold) bool {
	to, q := c.recipient()
	if to == nil || !c.mayPassTo(to, members) {
		return false
	}
	next := to.newHold()
	next.allAnswered, next.grantedAt, next.current = c.allAnswered, c.grantedAt, c.current
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
	if w == nil { // the recipient has left, or members have changed since the check
		c.takeBack(next, members)
		return false
	}
	c.mu.Lock()
	c.reported, c.released = true, true
	c.mu.Unlock()
	c.current.Store(next)
	giveBack(context.Background(), left, 0) // not passed on, for example because a renewal was in flight
	w.pass(next)
	return true
}

// recipient returns the first in line and the line, or nil if the hold must not be passed on.
func (c *compositeHold) recipient() (compositeRecipient, *waitQueue) {
	c.mu.Lock()
	q, confined := c.queue, c.confined != nil
	c.mu.Unlock()
	if q == nil || confined {
		return nil, nil
	}
	first, _ := q.first().(compositeRecipient)
	return first, q
}

// mayPassTo reports whether each member may be passed on and is what the recipient wants.
func (c *compositeHold) mayPassTo(to compositeRecipient, members []*Hold) bool {
	return !slices.ContainsFunc(indexesOf(members), func(i int) bool {
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

// succeed returns the hold that follows the hold of a member, or nil.
func succeed(h *Hold, index int, to compositeRecipient) *holdState {
	s := h.inner().(*holdState)
	return s.ownership.succeed(s, func() bool { return to.takes(index, s.ownership) })
}

// takeBack returns to the hold the members that were meant to be passed on, so that it releases
// them.
func (c *compositeHold) takeBack(next *compositeHold, members []*Hold) {
	next.beginRelease()
	next.moveLine(c)
	c.mu.Lock()
	copy(c.members, members)
	c.mu.Unlock()
}

// adopt makes a hold that came late a member of this hold, or of the hold that it was passed on
// to. It returns false if that hold is over; the caller must then release the member.
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
