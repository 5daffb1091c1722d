package latchkey

import (
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// RWLock is a read/write lock: many may read, or one may write. On the wire it is Redisson's RReadWriteLock.
// [RWLock.Reader] and [RWLock.Writer] return its two sides, which are locks; they do not lock.
//
// Both sides are re-entrant. A writer may also read, and continue to read after it has released the write
// hold; [Hold.Downgrade] does both in one step. A reader cannot become a writer: it gets ErrUpgrade at once,
// since it would wait for itself. Owners of other clients cannot join a hold.
//
// Neither side starves. A waiting writer keeps new readers out, for one Tuning.StaleWaiterTimeout at first,
// and then, after pauses of a fifth of it, for up to a minute at a time: so a read must be shorter than a
// minute. After a write, or a turn of writes, readers that have been waiting go first, all together. A
// waiting writer that has died keeps readers out for one StaleWaiterTimeout. Redisson's readers do not
// follow these rules and are never kept out.
//
// Goroutines of one client share a read hold: while one of them reads, others that want the same are
// admitted without a request, for a turn ([Tuning].Turn), and the last one to leave releases the lock. For
// the server they are one reader. Holds with [MaxHold], with a different [Lease], or with an owner that was
// chosen or read ([As], [WithOwner], [Hold.Owner]) are not shared.
//
// Each read hold has its own lease. If a reader crashes, it stops blocking writers when its lease ends,
// whatever other readers do.
type RWLock struct {
	read  *ReadLock
	write *WriteLock
}

var (
	_ Locker = (*ReadLock)(nil)
	_ Locker = (*WriteLock)(nil)
)

// NewRWLock returns the read/write lock with that name. It sends nothing.
func (c *Client) NewRWLock(name string) *RWLock {
	read, write := newBaseLock(c.engine(), rw.Read, name), newBaseLock(c.engine(), rw.Write, name)
	return &RWLock{read: &ReadLock{read}, write: &WriteLock{write}}
}

// Name returns the name as the program gave it.
func (l *RWLock) Name() string { return l.read.Name() }

// Client returns the client that made the lock.
func (l *RWLock) Client() *Client { return l.read.Client() }

// Reader returns the read side. It does not lock: call [ReadLock.Lock] on it.
func (l *RWLock) Reader() *ReadLock { return l.read }

// Writer returns the write side. It does not lock: call [WriteLock.Lock] on it.
func (l *RWLock) Writer() *WriteLock { return l.write }

// ReadLock is the side of an [RWLock] that many owners may hold at once. What differs from a [Lock]:
//
//   - Lock waits while another owner writes, and while a waiting writer keeps new readers out: see [RWLock].
//     ErrNotAcquired means that this was so until the end of the wait.
//   - Under a read or write hold of its own Lock does not wait. It returns a read hold of its own, which may
//     outlive the write hold. An owner of another client is an ErrInvalid, and so is [AtLeast].
//   - While another goroutine of this client reads, Lock and TryLock may let the caller read along with it,
//     and send nothing.
//   - ForceUnlock ends all read holds. While somebody writes, it does nothing and reports false.
type ReadLock struct{ baseLock }

// WriteLock is the write side of an [RWLock]. One owner holds it, alone. What differs from a [Lock]:
//
//   - Lock waits while another owner reads or writes. While it waits, it keeps new readers out: see [RWLock].
//     A Lock that gives up lets readers in at once, or after one Tuning.StaleWaiterTimeout if the server
//     cannot be reached. TryLock keeps no readers out.
//   - If the caller's own hold only reads, Lock and TryLock return ErrUpgrade at once, since the call would
//     wait for itself; the read hold is not affected. For an owner of another client they return ErrInvalid.
//   - [Hold.Downgrade] turns a hold into a read hold.
//   - ForceUnlock ends the write hold, and read holds of the same owner. While others read it does nothing,
//     and reports false.
type WriteLock struct{ baseLock }
