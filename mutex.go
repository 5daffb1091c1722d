package latchkey

// Mutex is the plain lock of the Redis documentation: SET name token NX PX, and a
// compare-and-delete. It shares its keys with redis-py, redsync, node-redlock and
// everything else that follows the recipe. It is the cheapest lock, and it is not
// re-entrant: an acquisition under the context of its own hold is an ErrInvalid,
// and owners mean nothing to it.
//
// Releases by this package wake waiters at once. Other users of the recipe publish
// nothing, so that a waiter also asks four times a second.
type Mutex struct{ *primitive }

var _ Locker = (*Mutex)(nil)

// NewMutex returns the plain lock of that name. Nothing is sent.
func (c *Client) NewMutex(name string) *Mutex {
	return &Mutex{newPrimitive(c, mutexKind, name)}
}
