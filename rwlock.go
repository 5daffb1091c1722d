package latchkey

import "github.com/latchkey-go/latchkey/internal/primitive/rw"

// RWLock is a read/write lock: many may read, or one may write. On the wire it is Redisson's
// RReadWriteLock. Its two sides are locks.
//
// Both sides are re-entrant. A writer may also read, and continue to read after it has released the
// write hold; [Hold.Downgrade] does both in one step. A reader cannot become a writer. To join a
// hold of another client ([As]) is an ErrInvalid.
//
// Neither side starves. A waiting writer keeps new readers out, for one Tuning.StaleWaiterTimeout
// at first, and then, with pauses, for up to a minute at a time: so a read must be shorter than a
// minute. A waiting writer that has died keeps them out for one StaleWaiterTimeout. After a write,
// or a turn of writes, readers that have been waiting go first, all together. Redisson's readers do
// not follow these rules and are never kept out.
//
// Goroutines of one client share a read hold: while one of them reads, others that want the same
// are admitted without a request, for a turn ([Tuning].Turn), and the last one to leave releases
// the lock. Holds with [MaxHold], with a different [Lease], or with an owner that was chosen or
// shared ([As], [WithOwner], [Hold.Share]) are not shared in this way.
//
// Each read hold has its own lease: a reader that crashes stops blocking writers when it ends,
// whatever other readers do.
type RWLock struct{ read, write *Lock }

// NewRWLock returns the read/write lock with that name. It sends nothing.
func (c *Client) NewRWLock(name string) *RWLock {
	return &RWLock{newLock(c, rw.Read, name), newLock(c, rw.Write, name)}
}

// Name returns the name as the program gave it.
func (l *RWLock) Name() string { return l.read.Name() }

// Reader returns the side that many owners may hold at once. It does not lock: call [Lock.Lock] on
// it. What differs from [Client.NewLock]:
//
//   - Lock waits while another owner writes, and while a waiting writer keeps new readers out.
//     ErrNotAcquired means that this was so until the end of the wait.
//   - Under a read or write hold of its own Lock does not wait. It returns a read hold of its own,
//     which may outlive the write hold. [AtLeast] is an ErrInvalid.
//   - ForceUnlock ends all read holds. While somebody writes, it does nothing and reports false.
func (l *RWLock) Reader() *Lock { return l.read }

// Writer returns the side that one owner holds, alone. It does not lock: call [Lock.Lock] on it.
// What differs from [Client.NewLock]:
//
//   - Lock waits while another owner reads or writes. While it waits, it keeps new readers out. A
//     Lock that gives up lets readers in at once, or after one Tuning.StaleWaiterTimeout if the
//     server cannot be reached. TryLock keeps no readers out.
//   - If the caller's own hold only reads, Lock and TryLock return ErrUpgrade at once, since the
//     call would wait for itself; the read hold is not affected.
//   - ForceUnlock ends the write hold, and read holds of the same owner. While others read it does
//     nothing, and reports false.
func (l *RWLock) Writer() *Lock { return l.write }
