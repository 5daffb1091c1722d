package owners

import (
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// RegisterGrants has locks of a kind given back that are granted to owners that no longer wait. It
// is called before an owner can be in a queue of that kind. inUse reports whether this client uses
// what a grant has given an owner, for owners that are not numbers of this client; else it is nil.
func RegisterGrants(c *core.Parts, s *ownership.Spec, inUse func(key, owner string) bool) {
	c.Inbox.Register(s.GrantMark, func(key, owner string) { giveBack(c, s, inUse, key, owner) })
}

// giveBack releases a lock that was granted to an owner that no longer waits, unless the owner has
// the lock. While the owner releases it, a second release is delayed: most grants that arrive then
// are late copies of the grant that the owner has used. If the second release were executed first,
// the owner's own release would find the lock gone, and report it lost.
func giveBack(c *core.Parts, s *ownership.Spec, inUse func(key, owner string) bool, key, owner string) {
	name, length := identity.Of(owner), c.Config.StaleWaiterTimeout
	if o := liveOn(c, key, name); o != nil {
		if o.CurrentPhase() >= ownership.Releasing { // it may be over by now
			o.UndoLater(undo.RetryPause, length)
		}
		return
	}
	if inUse != nil && inUse(key, owner) {
		return
	}
	o := ownership.New(ownership.LockOf(c, s, keyspace.OfKey(key, key)), name, 0)
	c.Sender.Background(func() { c.Undo.Add(o.LastRelease(), undo.Plan{Key: key, Lease: length}) })
}
