package latchkey

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// compositeHold is several holds that are one, for as long as enough of them last: the
// [holdBackend] of a [MultiLock] and of a [RedLock].
type compositeHold struct {
	lifecycle // guarded by mu

	name string
	need int // how many of the members have to last
	// patience is for how long members that are silent are waited for when they are not
	// needed.
	patience time.Duration

	// allAnswered is closed when all that were asked to become members have answered or
	// had their time, or nil if all answer before there is a hold.
	allAnswered chan struct{}

	granted time.Time                      // by the servers: to this hold, or to one that was passed on
	current *atomic.Pointer[compositeHold] // the one of those that has not been passed on

	unlocking sync.Mutex // one release after the other

	mu          sync.Mutex
	members     []*Hold     // by the order of the locks; nil where there is none
	latest      []*Hold     // the same with those that are over
	liveMembers int         // how many members are not nil
	open        bool        // all that there were to begin with have been added
	retryTimer  *time.Timer // looks for members that are missing, or nil
	// confined binds members that come from now on, or is nil.
	confined *confinement
	// queue is the line of this program for the lock, in which the hold stands, or nil.
	queue *waitQueue
	// Of a release: how many members were held until then, and whether it is to be
	// repeated because the outcome of some is unknown.
	confirmed int
	again     bool
}

// newCompositeHold makes the hold of n locks without any member yet.
func newCompositeHold(name string, n, need int, patience time.Duration) *compositeHold {
	c := &compositeHold{name: name, need: need, patience: patience, members: make([]*Hold, n), latest: make([]*Hold, n)}
	c.granted, c.current = time.Now(), new(atomic.Pointer[compositeHold])
	c.current.Store(c)
	return c
}

func (c *compositeHold) lockName() string { return c.name }
func (c *compositeHold) owner() Owner     { return Owner{} }
func (c *compositeHold) token() int64     { return 0 }
func (c *compositeHold) isShared() bool   { return false }

func (c *compositeHold) life() (*lifecycle, *sync.Mutex) { return &c.lifecycle, &c.mu }

// handle implements [holdBackend]. The clients of the members may differ in what they are to report.
func (c *compositeHold) handle() *Hold { return nil }

// unreleased returns the client of a member.
func (c *compositeHold) unreleased() *Client {
	c.mu.Lock()
	active := c.active()
	c.mu.Unlock()
	if !active {
		return nil
	}
	for _, h := range c.present() {
		if client := h.inner().unreleased(); client != nil {
			return client
		}
	}
	return nil
}

// latestMembers includes those that are over.
func (c *compositeHold) latestMembers() []*Hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.latest)
}

// begin has the whole end from now on when too few members are left, and tells why if that
// is so already.
func (c *compositeHold) begin() error {
	c.mu.Lock()
	c.open = true
	if c.liveMembers < c.need {
		_ = c.end(ErrLost)
	}
	c.mu.Unlock()
	return c.err()
}

// err looks at every member: one whose time is over tells the whole.
func (c *compositeHold) err() error {
	for _, h := range c.present() {
		_ = h.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.overBecause()
}

// validFor is for how long enough members can be relied on.
func (c *compositeHold) validFor() time.Duration {
	if c.err() != nil {
		return 0
	}
	var times []time.Duration
	for _, h := range c.present() {
		times = append(times, h.ValidFor())
	}
	return lastedBy(c.need, times)
}

// count is how often the members are held by their owners.
func (c *compositeHold) count() int {
	if c.err() != nil {
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

// find returns the live hold of a lock, or of one side of it, among the members that are
// there now: also one that came late.
func (c *compositeHold) find(p *primitive, side Kind) *holdState {
	if c.err() != nil {
		return nil
	}
	for _, member := range c.present() {
		if h := member.inner().find(p, side); h != nil {
			return h
		}
	}
	return nil
}

// extend extends every member, and fails if too few could be. It waits for a member that is about
// to be acquired: others may be silent by now, and its lease is to be as long as theirs.
func (c *compositeHold) extend(ctx context.Context, d time.Duration) error {
	if c.allAnswered != nil {
		select {
		case <-c.allAnswered:
		case <-ctx.Done():
		}
	}
	if err := c.err(); err != nil {
		return fail("extend", c.name, ErrNotHeld, err)
	}
	members := c.places()
	errs := callUntil(context.Background(), members, c.need, c.patience, func(h *Hold) error { return h.Extend(ctx, d) })
	done := 0
	for i, err := range errs {
		if members[i] != nil && err == nil {
			done++
		}
	}
	if done < c.need {
		return fail("extend", c.name, errs...)
	}
	if err := c.err(); err != nil {
		return fail("extend", c.name, ErrNotHeld, err) // it took too long
	}
	return nil
}

// confine binds the members, and those that are about to come. Members that are
// missing are not looked for any more: they would last longer than the others.
func (c *compositeHold) confine(bounds confinement) {
	c.mu.Lock()
	c.confined = &bounds
	if c.retryTimer != nil {
		c.retryTimer.Stop()
	}
	c.mu.Unlock()
	for _, h := range c.present() {
		h.inner().confine(bounds)
	}
}
