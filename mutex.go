package latchkey

import "github.com/latchkey-go/latchkey/internal/primitive/lock"

// NewMutex returns the plain lock of the Redis documentation: SET name token NX PX, and a
// compare-and-delete. It shares its keys with redis-py, redsync, node-redlock and other libraries
// that follow the recipe, and is the cheapest lock. It sends nothing. What differs from
// [Client.NewLock]:
//
//   - It is not re-entrant. Under the context of its own hold ([Hold.Context]) Lock and TryLock
//     return ErrInvalid at once, as they do with [As]. An owner that [WithOwner] put on ctx has no
//     effect.
//   - Other users of the recipe publish nothing: while one of them holds the mutex, a waiter polls
//     four times a second, and about 100 times a second while the mutex changes hands among them. A
//     client that takes it again and again leaves it free from time to time, so that they can
//     acquire it.
//   - [Lock.ForceUnlock] removes any token that another library may have written, even if that is
//     data of an application; [Client.ForceUnlock] removes tokens of this library only.
func (c *Client) NewMutex(name string) *Lock { return newLock(c, lock.Mutex, name) }
