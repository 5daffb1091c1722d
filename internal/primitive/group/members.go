package group

import (
	"cmp"
	"slices"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// add makes a hold a member. It returns false if the whole is over or already has that member; the
// caller must then release the hold.
func (c *compositeHold) add(i int, h *hold.Handle) bool {
	c.mu.Lock()
	if !c.Active() || c.members[i] != nil {
		c.mu.Unlock()
		return false
	}
	c.members[i], c.latest[i] = h, h
	c.liveMembers++
	confined, line := c.confined, c.line
	c.mu.Unlock()
	if line != nil {
		setRedLine(h, line)
	}
	if confined != nil {
		h.Backend().Confine(*confined)
	}
	if err := hold.OnEnd(h.Backend(), func(cause error) { c.memberEnded(i, h, cause) }); err != nil {
		c.memberEnded(i, h, err)
	}
	return true
}

// memberEnded records that a member is over.
func (c *compositeHold) memberEnded(i int, h *hold.Handle, cause error) {
	c.mu.Lock()
	var ending hold.Dependents
	if c.members[i] == h && !c.Releasing() {
		c.members[i] = nil
		c.liveMembers--
	}
	ends := c.open && c.liveMembers < c.need && c.Active()
	if ends {
		ending = c.End(cmp.Or(cause, fault.ErrLost))
	}
	c.mu.Unlock()
	ending.End(cause)
	if ends {
		c.leaveLine()
		c.releaseRest()
	}
}

// memberCount is how many members are present.
func (c *compositeHold) memberCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.liveMembers
}

// missing returns the indexes without a member, or nil if the whole is over.
func (c *compositeHold) missing() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.Active() {
		return nil
	}
	var indexes []int
	for i, h := range c.members {
		if h == nil {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// allMembers returns the members in the order of the locks, nil where there is none.
func (c *compositeHold) allMembers() []*hold.Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// present returns the members that are there.
func (c *compositeHold) present() []*hold.Handle {
	return slices.DeleteFunc(c.allMembers(), func(h *hold.Handle) bool { return h == nil })
}
