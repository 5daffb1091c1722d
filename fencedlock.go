package latchkey

import "github.com/latchkey-go/latchkey/internal/primitive/lock"

// NewFencedLock returns a [Client.NewLock] whose holds carry a fencing token ([Hold.Token]); on the
// wire it is Redisson's RFencedLock. It sends nothing. The token of a hold is larger than that of
// every earlier hold, as long as the server keeps its counter ([Options.TimeFencing] helps when it
// does not), and may skip numbers. Pass it to the storage that the lock protects, and let the
// storage refuse a smaller one. Each hold takes its token from the server, so nothing is passed on
// in memory ([Tuning].Turn).
//
// Do not use a name for a fenced lock in one place and for NewLock in another. The two exclude each
// other, but the latter takes no tokens.
func (c *Client) NewFencedLock(name string) *Lock { return newLock(c, lock.Fenced, name) }
