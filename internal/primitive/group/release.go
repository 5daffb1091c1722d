package group

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
)

// beginRelease begins the end of the whole, which accepts no more members, and returns the
// present members.
func (c *compositeHold) beginRelease() []*hold.Handle {
	c.mu.Lock()
	c.MarkReleasing()
	ending := c.TakeDependents()
	if c.retryTimer != nil {
		c.retryTimer.Stop()
	}
	members := slices.Clone(c.members)
	c.mu.Unlock()
	ending.End(fault.ErrNotHeld)
	return members
}

// abandon ends a hold that was not given to any caller.
func (c *compositeHold) abandon(ctx context.Context) { giveBack(ctx, c.beginRelease(), c.patience) }

// Unlock releases every member. A second call waits for the first.
func (c *compositeHold) Unlock(ctx context.Context) error {
	c.unlocking.Lock()
	defer c.unlocking.Unlock()
	lost := c.Err()
	c.mu.Lock()
	reported, again, cause := c.Reported(), c.again, c.Cause()
	c.mu.Unlock()
	if reported {
		return fault.Op("unlock", c.name, fault.ErrNotHeld, cause)
	}
	enough := c.need
	if lost != nil && !again {
		enough = 0 // the hold is lost: even a success is not a release
	}
	members := c.beginRelease()
	defer c.leaveLine()
	release := c.countDown(func(h *hold.Handle) error { return h.Unlock(ctx) })
	errs := callUntil(context.Background(), members, enough, c.patience, release)
	return c.concludeRelease(lost, errs, c.countReleased(members, errs))
}

// countReleased counts the members that were held until this release, and drops those that are
// over, so that they are not released again. It reports whether the outcome for some is unknown.
func (c *compositeHold) countReleased(members []*hold.Handle, errs []error) (unknown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, h := range members {
		switch {
		case h == nil:
		case errs[i] == nil:
			c.members[i] = nil
			c.liveMembers--
			c.confirmed++
		case errors.Is(errs[i], fault.ErrNotHeld):
			c.members[i] = nil
		default:
			unknown = true
		}
	}
	return unknown
}

// concludeRelease returns what the outcomes of the members mean for the release.
func (c *compositeHold) concludeRelease(lost error, errs []error, unknown bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case lost != nil && !c.again:
		c.MarkReported()
		return fault.Op("unlock", c.name, append([]error{fault.ErrNotHeld, lost}, errs...)...)
	case c.confirmed >= c.need:
		c.MarkReported()
		_ = c.End(nil) // what ends with it ended when the release began
		return nil
	case unknown:
		c.again = true // Unlock may be called again
		return fault.Op("unlock", c.name, errs...)
	}
	c.MarkReported()
	return fault.Op("unlock", c.name, append([]error{fault.ErrNotHeld, fault.ErrLost}, errs...)...)
}

// releaseRest releases the remaining members of a lost hold, shortly after the loss was reported:
// a lost hold must not keep others out.
func (c *compositeHold) releaseRest() {
	time.AfterFunc(lease.TimerLateness, func() { giveBack(context.Background(), c.present(), c.patience) })
}
