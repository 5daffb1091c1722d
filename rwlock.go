package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// RWLock is a read/write lock: many may read, or one may write. On the wire it is Redisson's RReadWriteLock.
// [RWLock.Reader] and [RWLock.Writer] return its two sides, which are locks; they do not lock.
//
// Both sides are re-entrant. A writer may also read (under [Hold.Context] of its write hold, or by its owner),
// and continue to read after it has released the write hold; [Hold.Downgrade] does both in one step. A reader
// cannot become a writer: it gets ErrUpgrade at once, since it would wait for itself.
//
// A waiting writer keeps new readers out, but not forever: for one Tuning.StaleWaiterTimeout at first, then,
// after a pause of a fifth of it, for twice as long, up to a minute at a time. So a writer gets the lock if the
// current readers leave within such a time, and no reader is kept out for longer. A waiting writer that has
// died keeps readers out for one StaleWaiterTimeout.
//
// Writers cannot keep readers out forever either. After a write, or a turn of writes, readers that have been
// waiting go first, all together. The next writer waits for them, or for a tenth of a second if none comes.
// Readers that arrive later wait for the end of the next write. Redisson's readers do not follow these rules
// and are never kept out.
//
// Writers are served like the waiters of a [Lock]: goroutines of a client pass the write hold on in memory for
// a turn, while none of them waits to read. Then a release gives the lock to the next client whose writers
// wait.
//
// Each read hold has its own lease. If a reader crashes, it stops blocking writers when its lease ends,
// whatever other readers do.
//
// Goroutines of one client read along with each other: while one of them reads, others that want the same are
// admitted without a request, and the last one to leave releases the lock. For the server, and for
// [Client.Inspect], they are one reader. That lasts for a turn ([Tuning].Turn) from when the server admitted
// the first of them, which bounds how much longer a writer waits. Some holds are not shared: those with
// [MaxHold], with a different [Lease], with an owner that was chosen ([As], [WithOwner]) or read
// ([Hold.Owner]), and those of an owner that has written.
//
// Owners of other clients cannot join a hold ([As] with one is an ErrInvalid):
// Redisson's format has no room for it.
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

func (l *baseLock) isLocked(ctx context.Context, write bool) (bool, error) {
	i, err := l.self().Look(ctx)
	if err != nil {
		return false, err
	}
	for _, h := range i.Holders {
		if h.Write == write {
			return true, nil
		}
	}
	return false, nil
}

// ReadLock is the side of an [RWLock] that many owners may hold at once.
type ReadLock struct{ *baseLock }

// Lock acquires the lock to read, together with other readers. It waits while an owner other than the caller's
// writes, and while a waiting writer keeps new readers out. It waits until ctx ends or the time of [Wait] is
// over; with neither, it waits without limit. The other options are [Lease], [MaxHold], [As] and [Note].
//
// A waiting writer keeps new readers out for one Tuning.StaleWaiterTimeout at first, then for longer, up to a
// minute at a time; in between, readers are admitted. A waiting writer that has died keeps them out for one
// StaleWaiterTimeout.
//
// If ctx carries a read or write hold of this lock ([Hold.Context]), or As or [WithOwner] names the owner of
// one, Lock does not wait. It returns a read hold of its own, which needs its own Unlock and may outlive the
// write hold. An owner of another client is an ErrInvalid.
//
// While another goroutine of this client reads, Lock may let the caller read along with it and send nothing:
// see [RWLock].
//
// The client renews the hold until Unlock, unless Lease fixes its lease; each read hold has its own lease.
// Canceling ctx after Lock returns does not affect the hold.
//
// A nil error means that you hold the lock to read. After any other error this call holds nothing, and a hold
// that it tried to re-enter is not affected. While the server cannot be reached, Lock keeps trying. The error
// matches one of
//
//   - ErrNotAcquired: another owner wrote, or waited to write, until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be reached or did not answer by the end of the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the acquisition;
//     it was undone
//   - ErrNotAcquired and ErrLost: the hold to be re-entered was lost before this call entered it
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (l *ReadLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock to read and does not wait. The options are [Lease], [MaxHold],
// [As] and [Note]. It succeeds alongside other readers, and under a write hold of the caller's own. Like Lock,
// it may let the caller read along with another goroutine of this client.
//
// ErrNotAcquired means that another owner writes, or that a waiting writer keeps new readers out.
// ErrUnavailable means that the server could not be reached: an attempt that meets a server in trouble
// (silent, loading, failing over) is repeated until it is answered, ctx ends, or Options.RetryBudget is spent.
// All other errors, the re-entry of a hold on ctx, and the state left behind are as for Lock.
func (l *ReadLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
}

// IsLocked reports whether anybody holds the lock to read on the server, including this client. It is false
// while a writer that does not read holds the lock. The answer may be out of date when it arrives. Don't branch
// on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *ReadLock) IsLocked(ctx context.Context) (bool, error) { return l.isLocked(ctx, false) }

// ForceUnlock ends all read holds unless somebody writes, wakes waiters, and reports whether it ended any.
// While somebody writes, it does nothing and reports false.
//
// ForceUnlock does not wait for the former holders. Those of this library learn of it at their next renewal, at
// most a third of their lease later, and their holds end with ErrLost. Until then they keep working, at the
// same time as the next holder. A hold that begins after ForceUnlock has looked is not touched.
//
// The errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not answered. It may or may
// not have happened, and you may repeat it.
func (l *ReadLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.baseLock.ForceUnlock(ctx)
}

// RemainingLease returns how long the lock as a whole stays held on the server, by readers or a writer, if
// nobody renews it: 0 if it is free, [NoExpiry] if its key has lost its expiry, which only a foreign command
// can cause. Live holders renew their leases, so the lock may stay held for longer.
//
// The errors are those of Inspect.
func (l *ReadLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	return l.baseLock.RemainingLease(ctx)
}

// Inspect returns the readers and writers on the server: both sides of the lock, and for each [Holder] which
// side it holds. Goroutines of one client that read along with each other are one holder. The answer may be out
// of date when it arrives. A free lock has the kind [KindNone] and no holders.
//
// It is repeated for Options.RetryBudget while the server is in trouble. The error matches ErrUnavailable if
// the server could not be reached until then or until ctx ended, ErrClosed, ErrWrongKind if the key is another
// kind of object (the Inspection then says what it is), ErrInvalid if the name cannot be used, or is a
// *rueidis.RedisError if the server refuses.
func (l *ReadLock) Inspect(ctx context.Context) (Inspection, error) {
	return l.baseLock.Inspect(ctx)
}

// WriteLock is the write side of an [RWLock]. One owner holds it, alone.
type WriteLock struct{ *baseLock }

// Lock acquires the lock to write, alone. It waits while another owner reads or writes, until ctx
// ends or the time of [Wait] is over; with neither, it waits without limit. The other options are
// [Lease], [MaxHold], [AtLeast], [As] and [Note].
//
// While it waits it keeps new readers out: for one Tuning.StaleWaiterTimeout at first, then, after
// a pause of a fifth of it, for twice as long, up to a minute at a time. So Lock succeeds if the
// current readers leave within such a time. A Lock that gives up lets readers in at once, or after
// one StaleWaiterTimeout if the server cannot be reached. Readers of Redisson are never kept out.
// Writers are served in the order that [Lock] describes.
//
// If ctx carries a write hold of this lock ([Hold.Context]), or As or [WithOwner] names its owner,
// Lock re-enters that hold at once and returns a Hold of its own, which needs its own Unlock. If
// the hold only reads, Lock returns ErrUpgrade at once, since it would wait for itself. For an owner
// of another client it returns ErrInvalid.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Canceling ctx after Lock
// returns does not affect the hold. [Hold.Downgrade] turns it into a read hold.
//
// A nil error means that you hold the lock to write. After any other error this call holds nothing,
// and a hold that it tried to re-enter is not affected. While the server cannot be reached, Lock
// keeps trying. The error matches one of
//
//   - ErrNotAcquired: another owner read or wrote until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be reached or did not answer by the end of the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the acquisition;
//     it was undone
//   - ErrNotAcquired and ErrLost: the hold to be re-entered was lost before this call entered it
//   - ErrUpgrade: the caller reads; its read hold is not affected
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (l *WriteLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock to write, does not wait, and keeps no readers out.
// The options are [Lease], [MaxHold], [AtLeast], [As] and [Note].
//
// ErrNotAcquired means that another owner reads or writes. ErrUpgrade means that the caller reads:
// release the read hold first. ErrUnavailable means that the server could not be reached: an
// attempt that meets a server in trouble (silent, loading, failing over) is repeated until it is
// answered, ctx ends, or Options.RetryBudget is spent. All other errors, the re-entry of a hold on
// ctx, and the state left behind are as for Lock.
func (l *WriteLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
}

// IsLocked reports whether anybody, this client included, holds the lock to write. It is false
// while others only read. It queries the server, and the answer may be out of date when it arrives.
// Don't branch on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *WriteLock) IsLocked(ctx context.Context) (bool, error) { return l.isLocked(ctx, true) }

// ForceUnlock ends the write hold, and read holds of the same owner, wakes waiters, and reports
// whether there was one. While others read it does nothing, and reports false.
//
// The former holders are not notified. Those of this library notice at their next renewal, at most a
// third of their lease later, or within Tuning.PollCeiling if goroutines of their client are in
// line to write. Their holds then end with ErrLost. Until then they continue, alongside the next
// holder. A hold that begins after ForceUnlock has looked is not touched.
//
// The errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not answered. It
// may or may not have happened, and you may repeat it.
func (l *WriteLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.baseLock.ForceUnlock(ctx)
}

// RemainingLease returns how long the lock as a whole, for readers or a writer, stays held if
// nobody renews it: 0 if it is free, [NoExpiry] if its key has lost its expiry, which only a
// foreign command can cause. Live holders renew their leases, so the lock may stay held for longer.
//
// The errors are those of Inspect.
func (l *WriteLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	return l.baseLock.RemainingLease(ctx)
}

// Inspect returns who reads and who writes. It shows both sides of the lock, and the side of each
// [Holder]. Goroutines of one client that read along with each other are one holder. The answer may
// be out of date when it arrives. A free lock has the kind [KindNone] and no holders.
//
// Inspect repeats its request for Options.RetryBudget while the server is in trouble. The error
// matches ErrUnavailable if the server could not be reached until then or until ctx ended,
// ErrClosed, ErrWrongKind if the key is another kind of object (the Inspection then says what it
// is), ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server refuses.
func (l *WriteLock) Inspect(ctx context.Context) (Inspection, error) {
	return l.baseLock.Inspect(ctx)
}
