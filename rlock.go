package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// Lock is the re-entrant lock; on the wire it is Redisson's RLock. An acquisition under the context of a hold
// ([Hold.Context]), or by the same owner ([As], [WithOwner]), re-enters the hold; the lock is free after as
// many releases.
//
// Waiters of one client are served first come, first served: Unlock passes the lock in memory to the next of
// them, for a turn ([Tuning].Turn). Then another client has its turn, in the order in which they began to
// wait. That is not guaranteed: a client that finds the lock free acquires it, and processes of Redisson race.
// [FairLock] keeps the order among all waiters.
type Lock struct{ *baseLock }

var _ Locker = (*Lock)(nil)

// NewLock returns the re-entrant lock with that name. It sends nothing.
func (c *Client) NewLock(name string) *Lock {
	return &Lock{newBaseLock(c.engine(), lock.Reentrant, name)}
}
