package ownership

import (
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// RegisterGrants has locks of a kind given back that are granted to owners that no longer wait.
func (c *Engine) RegisterGrants(s *Spec) {
	if s.GrantMark != "" {
		c.Inbox.Register(s.GrantMark, func(key, owner string) { c.giveBack(s, key, owner) })
	}
}

// giveBack releases a lock that was granted to an owner that no longer waits, unless the owner has
// the lock. While the owner releases it, a second release is delayed: most grants that arrive then
// are late copies of the grant that the owner has used. If the second release were executed first,
// the owner's own release would find the lock gone, and report it lost.
func (c *Engine) giveBack(s *Spec, key, owner string) {
	name, length := identity.Of(owner), c.Config.StaleWaiterTimeout
	if o := c.Registry.liveOn(key, name); o != nil {
		if !o.Usable() {
			o.UndoLater(undo.RetryPause, length)
		}
		return
	}
	if s.InUse != nil && s.InUse(c.Registry, key, owner) {
		return
	}
	o := c.Registry.Build(LockOf(c, s, keyspace.OfKey(key, key)), name, 0, false)
	c.Sender.Background(func() { c.Undo.Add(o.LastRelease(), undo.Plan{Key: key, Lease: length}) })
}
