package latchkey

// FencedLock is a re-entrant [Lock] whose holds carry a fencing token
// ([Hold.Token]), on the wire Redisson's RFencedLock. The token is taken when the
// lock goes from free to held, is larger than any before, and stays the same for
// the whole hold, re-entries included.
//
// Do not use a name as a FencedLock here and as a Lock there: they exclude each
// other, but the Lock takes no tokens.
type FencedLock struct{ *primitive }

var _ Locker = (*FencedLock)(nil)

// NewFencedLock returns the fenced lock of that name. Nothing is sent.
func (c *Client) NewFencedLock(name string) *FencedLock {
	return &FencedLock{newPrimitive(c, fencedKind, name)}
}
