package owners

import (
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// liveOn returns the ownership on a key that has begun and is not over, for an owner that this
// client made, as it is in Redis, or nil.
func liveOn(c *core.Parts, key string, owner identity.Owner) *ownership.Ownership {
	if owner.ClientID() != c.ID { // a permit, for one: there may be many of them
		return nil
	}
	wire := owner.String()
	o, _ := c.Lines.Find(key, func(h line.Held) bool {
		o := h.(*ownership.Ownership)
		return o.Number == owner.Number() && o.Wire == wire
	}).(*ownership.Ownership)
	if o == nil || o.CurrentPhase() == ownership.Over {
		return nil
	}
	return o
}

// NewestOn returns the newest live ownership of a client on a key, or nil.
func NewestOn(c *core.Parts, key string) *ownership.Ownership {
	o, _ := c.Lines.Find(key, func(line.Held) bool { return true }).(*ownership.Ownership)
	return o
}

// All returns the live ownerships of a client.
func All(c *core.Parts) (all []*ownership.Ownership) {
	for _, h := range c.Lines.Held() {
		all = append(all, h.(*ownership.Ownership))
	}
	return all
}
