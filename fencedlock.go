package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// FencedLock is a [Lock] whose holds carry a fencing token ([Hold.Token]); on the wire it is Redisson's
// RFencedLock. The token of a hold is larger than that of every earlier hold, as long as the server keeps
// its counter ([Options.TimeFencing] helps when it does not). It stays the same for the whole hold,
// re-entries included. Tokens may have gaps. Pass the token to the storage that the lock protects, and let
// the storage refuse a smaller one.
//
// Each hold takes its token from the server, so [Tuning].Turn does not apply: nothing is passed on in
// memory. Everything else is as for a Lock.
//
// Do not use a name as a FencedLock in one place and as a Lock in another. The two exclude each other, but
// the Lock takes no tokens.
type FencedLock struct{ baseLock }

var _ Locker = (*FencedLock)(nil)

// NewFencedLock returns the fenced lock with that name. It sends nothing.
func (c *Client) NewFencedLock(name string) *FencedLock {
	return &FencedLock{newBaseLock(c.engine(), lock.Fenced, name)}
}
