package group

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// compositeHold combines several holds into one that lasts as long as enough of them last. It is
// the [hold.Backend] of a lock of several members.
type compositeHold struct {
	hold.Ownerless
	hold.Lifecycle // guarded by mu

	lock *Lock
	name string
	need int // how many members must last
	// patience is how long to wait for silent members that are not needed.
	patience time.Duration

	// allAnswered is closed when every requested member has answered or run out of time. It is
	// nil if all answer before the hold exists.
	allAnswered chan struct{}

	grantedAt time.Time // when the servers granted it

	unlocking sync.Mutex // serializes releases

	mu          sync.Mutex
	members     []*hold.Handle // in the order of the locks; nil where there is none
	latest      []*hold.Handle // the same, including members that are over
	liveMembers int            // how many members are not nil
	open        bool           // all initial members have been added
	retryTimer  *time.Timer    // tries again to acquire missing members, or nil
	// confined limits members that are added from now on, or is nil.
	confined *hold.Confinement
	line     *line.FIFO // the line that the hold keeps, or nil
	// For a release: how many members were held until it, and whether it must be repeated because
	// the outcome for some members is unknown.
	confirmed int
	again     bool
}

// newCompositeHold makes the hold of a lock, still without members.
func newCompositeHold(l *Lock, patience time.Duration) *compositeHold {
	n := len(l.Members)
	return &compositeHold{lock: l, name: l.Name(), need: l.need, patience: patience, grantedAt: time.Now(),
		members: make([]*hold.Handle, n), latest: make([]*hold.Handle, n)}
}

// Name implements [hold.Backend].
func (c *compositeHold) Name() string { return c.name }

// Life implements [hold.Backend].
func (c *compositeHold) Life() (*hold.Lifecycle, *sync.Mutex) { return &c.Lifecycle, &c.mu }

// Unreleased returns the reporter of a client of a member.
func (c *compositeHold) Unreleased() *report.Reporter {
	c.mu.Lock()
	active := c.Active()
	c.mu.Unlock()
	if !active {
		return nil
	}
	for _, h := range c.present() {
		if reporter := h.Backend().Unreleased(); reporter != nil {
			return reporter
		}
	}
	return nil
}

// Members includes members that are over.
func (c *compositeHold) Members() []*hold.Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.latest)
}

// begin makes the whole end, from now on, when too few members are left. It returns the reason if
// it has ended already.
func (c *compositeHold) begin() error {
	c.mu.Lock()
	c.open = true
	if c.liveMembers < c.need {
		_ = c.End(fault.ErrLost)
	}
	c.mu.Unlock()
	return c.Err()
}

// Err checks every member, because a member whose time is over may end the whole.
func (c *compositeHold) Err() error {
	for _, h := range c.present() {
		_ = h.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.OverBecause()
}

// ValidFor is how long enough members can be relied on.
func (c *compositeHold) ValidFor() time.Duration {
	if c.Err() != nil {
		return 0
	}
	var times []time.Duration
	for _, h := range c.present() {
		times = append(times, h.ValidFor())
	}
	return lastedBy(c.need, times)
}

// Count is how often every member is held by its owner: the smallest count.
func (c *compositeHold) Count() int {
	if c.Err() != nil {
		return 0
	}
	least := 0
	for _, h := range c.present() {
		if n := h.Count(); least == 0 || n < least {
			least = n
		}
	}
	return least
}

// HandleFrom returns the innermost live hold on ctx of all members together, or the innermost one
// if none is live, or nil. A lock with the same members, of the same clients, counts as this one.
func (l *Lock) HandleFrom(ctx context.Context) *hold.Handle {
	return hold.From(ctx, func(b hold.Backend) bool {
		c, is := b.(*compositeHold)
		return is && (c.lock == l || identityOf(c.lock.kind, c.lock.Members) == identityOf(l.kind, l.Members))
	})
}

// Extend extends every member, and fails if too few could be extended. It waits for members that
// are being acquired: others may be silent by now, and the new leases must be as long as theirs.
func (c *compositeHold) Extend(ctx context.Context, d time.Duration) error {
	if c.allAnswered != nil {
		select {
		case <-c.allAnswered:
		case <-ctx.Done():
		}
	}
	if err := c.Err(); err != nil {
		return fault.Op("extend", c.name, fault.ErrNotHeld, err)
	}
	members := c.allMembers()
	extend := func(h *hold.Handle) error { return h.Extend(ctx, d) }
	errs := callUntil(context.Background(), members, c.need, c.patience, extend)
	done := 0
	for i, err := range errs {
		if members[i] != nil && err == nil {
			done++
		}
	}
	if done < c.need {
		return fault.Op("extend", c.name, errs...)
	}
	if err := c.Err(); err != nil {
		return fault.Op("extend", c.name, fault.ErrNotHeld, err) // it took too long
	}
	return nil
}

// Confine limits the present members and those that are still to come. It stops looking for
// missing members, which would last longer than the others.
func (c *compositeHold) Confine(bounds hold.Confinement) {
	c.mu.Lock()
	c.confined = &bounds
	if c.retryTimer != nil {
		c.retryTimer.Stop()
	}
	c.mu.Unlock()
	for _, h := range c.present() {
		h.Backend().Confine(bounds)
	}
}
