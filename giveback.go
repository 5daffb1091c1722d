package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// registerGrants has locks of a kind given back that are granted to owners that no longer wait.
func (c *engine) registerGrants(s *spec) {
	if s.grantMark != "" {
		c.Inbox.Register(s.grantMark, func(key, owner string) { c.giveBack(s, key, owner) })
	}
}

// giveBack releases a lock that was granted to an owner that no longer waits, unless the owner has
// the lock. While the owner releases it, a second release is delayed: most grants that arrive then
// are late copies of the grant that the owner has used. If the second release were executed first,
// the owner's own release would find the lock gone, and report it lost.
func (c *engine) giveBack(s *spec, key, owner string) {
	name, length := identity.Of(owner), c.Config.StaleWaiterTimeout
	if o := c.registry.liveOn(key, name); o != nil {
		if !o.usable() {
			o.undoLater(undo.RetryPause, length)
		}
		return
	}
	if s.inUse != nil && s.inUse(c.registry, key, owner) {
		return
	}
	o := c.registry.build(primitiveOf(c, s, keyspace.OfKey(key, key)), name, 0, false)
	c.Sender.Background(func() { c.Undo.Add(o.lastRelease(), undo.Plan{Key: key, Lease: length}) })
}
