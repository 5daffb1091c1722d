package latchkey

import (
	"context"
	"strconv"
	"time"
)

// RWLock is a read/write lock: many may read, or one may write. On the wire it is
// Redisson's RReadWriteLock. [RWLock.Reader] and [RWLock.Writer] return its two sides, which
// are locks; they do not lock.
//
// Both sides are re-entrant. A writer may read as well (under [Hold.Context] of its write
// hold, or by its owner), and go on reading after it has released the write hold;
// [Hold.Downgrade] does both in one step. A reader cannot become a writer: it gets ErrUpgrade
// at once, since it would wait for itself.
//
// A waiting writer keeps new readers out, but not for ever: for one
// Options.StaleWaiterTimeout at first, then, after a pause of a fifth of it, for twice as
// long, up to a minute at a time. So a writer gets in when the readers that are inside leave
// within such a time, and no reader is kept out for longer. A waiting writer that has
// died keeps readers out for one StaleWaiterTimeout. After a write, readers that have
// been waiting go first, all together; the next writer waits for them, or for a tenth of
// a second if none comes. So writers cannot keep readers out either. Readers of Redisson do
// not know of this and are never kept out.
//
// Each read hold has its own lease. A reader that crashes stops blocking writers when its
// lease is over, whatever other readers do.
//
// Owners of other clients cannot join a hold ([By] with one is an ErrInvalid):
// Redisson's format has no room for it.
type RWLock struct {
	read  *ReadLock
	write *WriteLock
}

// ReadLock is the side of an [RWLock] that many may hold.
type ReadLock struct{ *primitive }

// WriteLock is the side of an [RWLock] that one owner may hold, alone.
type WriteLock struct{ *primitive }

var (
	_ Locker = (*ReadLock)(nil)
	_ Locker = (*WriteLock)(nil)
)

var (
	readSpec = &spec{kind: KindRead, family: KindRWLock, stored: KindRWLock, protocol: readProtocol{},
		renew: rwRenew, reentrant: true, side: KindRead}
	writeSpec = &spec{kind: KindWrite, family: KindRWLock, stored: KindRWLock, protocol: writeProtocol{},
		renew: rwRenew, reentrant: true, side: KindWrite}
)

// NewRWLock returns the read/write lock of that name. Nothing is sent.
func (c *Client) NewRWLock(name string) *RWLock {
	read, write := newPrimitive(c, readSpec, name), newPrimitive(c, writeSpec, name)
	for _, side := range []*primitive{read, write} {
		side.channel = rwChannel(side.key)
	}
	write.reader = read
	return &RWLock{read: &ReadLock{read}, write: &WriteLock{write}}
}

// Name returns the name as the program gave it.
func (l *RWLock) Name() string { return l.read.name }

// Reader returns the side to read under. It does not lock: call [ReadLock.Lock] on it.
func (l *RWLock) Reader() *ReadLock { return l.read }

// Writer returns the side to write under. It does not lock: call [WriteLock.Lock] on it.
func (l *RWLock) Writer() *WriteLock { return l.write }

// Lock acquires the lock to read, together with other readers. It waits while an owner other
// than the caller's writes, and while a waiting writer keeps new readers out; until ctx ends
// or the time of [Wait] is over; with neither, without a limit. The other options are [Lease],
// [MaxHold] and [By].
//
// A waiting writer keeps new readers out for one Options.StaleWaiterTimeout at first, then for
// longer, up to a minute at a time; in between readers come in. A waiting writer that has
// died keeps them out for one StaleWaiterTimeout.
//
// If ctx carries a read or write hold of this lock ([Hold.Context]), or By or [WithOwner] name
// the owner of one, Lock does not wait and returns a read hold of its own, which needs its own
// Unlock and may outlive the write hold. An owner of another client is an ErrInvalid.
//
// The client renews the hold until Unlock, unless Lease fixes its lease; each read hold has
// its own lease. Cancelling ctx after Lock returns does not affect the hold.
//
// A nil error means that you hold the lock to read. After any other error this call holds nothing,
// and a hold that it was to enter again is not affected. While the server cannot be
// reached, Lock goes on trying. The error matches one of
//
//   - ErrNotAcquired: somebody else wrote, or waited to write, until ctx ended or the time
//     of Wait was over
//   - ErrUnavailable: the server could not be asked, or did not answer, when the time was
//     over, or ctx had ended before the call. If a request was sent and not answered, the
//     error also matches ErrUnknownOutcome: the client undoes in the background what the
//     request may have acquired
//   - ErrNotReplicated: too few of the replicas that [Options.Replicas] asks for confirmed
//     the acquisition; it was undone
//   - ErrNotAcquired and ErrLost: the hold to be entered again was lost before this call
//     entered it
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx
// ended, the error also matches that of ctx. The end of Wait matches no error of a context.
func (l *ReadLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return l.acquire(ctx, "lock", true, settingsOf(options))
}

// TryLock makes one attempt to acquire the lock to read and does not wait. The options are
// [Lease], [MaxHold] and [By]. It succeeds beside other readers, and under a write hold of the
// caller's own.
//
// ErrNotAcquired means that somebody else writes, or that a waiting writer keeps new readers
// out.
// ErrUnavailable means that the server could not be asked: an attempt that meets a server in
// trouble (silent, loading, failing over) is repeated until it is answered, ctx ends, or
// Options.RetryBudget is spent. All other errors, the re-entry of a hold on ctx, and what is
// left behind are as for Lock.
func (l *ReadLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return l.acquire(ctx, "try lock", false, settingsOf(options))
}

// Lock acquires the lock to write, alone. It waits while anybody else reads or writes; until
// ctx ends or the time of [Wait] is over; with neither, without a limit. The other options are
// [Lease], [MaxHold] and [By].
//
// While it waits it keeps new readers out: for one Options.StaleWaiterTimeout at first, then,
// after a pause of a fifth of it, for twice as long, up to a minute at a time. So it gets in
// when the readers that are inside leave within such a time. A Lock that gives up lets readers
// in at once; if the server cannot be told, after one StaleWaiterTimeout. Readers of
// Redisson are never kept out. There is no order among writers of different processes.
//
// If ctx carries a write hold of this lock ([Hold.Context]), or By or [WithOwner] name its
// owner, Lock enters that hold again at once and returns a Hold of its own, which needs its
// own Unlock. If they name a hold that only reads, Lock returns ErrUpgrade at once, since it
// would wait for itself. An owner of another client is an ErrInvalid.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Cancelling ctx after
// Lock returns does not affect the hold. [Hold.Downgrade] turns it into a read hold.
//
// A nil error means that you hold the lock to write. After any other error this call holds nothing,
// and a hold that it was to enter again is not affected. While the server cannot be
// reached, Lock goes on trying. The error matches one of
//
//   - ErrNotAcquired: somebody else read or wrote until ctx ended or the time of Wait was
//     over
//   - ErrUnavailable: the server could not be asked, or did not answer, when the time was
//     over, or ctx had ended before the call. If a request was sent and not answered, the
//     error also matches ErrUnknownOutcome: the client undoes in the background what the
//     request may have acquired
//   - ErrNotReplicated: too few of the replicas that [Options.Replicas] asks for confirmed
//     the acquisition; it was undone
//   - ErrNotAcquired and ErrLost: the hold to be entered again was lost before this call
//     entered it
//   - ErrUpgrade: the caller reads; its read hold is not affected
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx
// ended, the error also matches that of ctx. The end of Wait matches no error of a context.
func (l *WriteLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return l.acquire(ctx, "lock", true, settingsOf(options))
}

// TryLock makes one attempt to acquire the lock to write, does not wait, and keeps no readers
// out. The options are [Lease], [MaxHold] and [By].
//
// ErrNotAcquired means that somebody else reads or writes. ErrUpgrade means that the caller
// reads: release the read hold first.
// ErrUnavailable means that the server could not be asked: an attempt that meets a server in
// trouble (silent, loading, failing over) is repeated until it is answered, ctx ends, or
// Options.RetryBudget is spent. All other errors, the re-entry of a hold on ctx, and what is
// left behind are as for Lock.
func (l *WriteLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return l.acquire(ctx, "try lock", false, settingsOf(options))
}

// IsLocked asks the server whether anybody holds the lock to read, this client included. It
// is false while a writer that does not read holds the lock. The answer may be out of date
// when it arrives. Don't branch on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *ReadLock) IsLocked(ctx context.Context) (bool, error) { return l.isLocked(ctx, false) }

// IsLocked asks the server whether anybody holds the lock to write, this client included. It
// is false while others read. The answer may be out of date when it arrives. Don't branch on
// it; acquire the lock.
//
// The errors are those of Inspect.
func (l *WriteLock) IsLocked(ctx context.Context) (bool, error) { return l.isLocked(ctx, true) }

func (p *primitive) isLocked(ctx context.Context, write bool) (bool, error) {
	i, err := p.Inspect(ctx)
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

// ForceUnlock ends all read holds unless somebody writes, wakes waiters, and reports whether
// it ended any. While somebody writes it does nothing, and reports false.
//
// The former holders are not asked. Those of this library learn of it at their next renewal,
// a third of their lease later at most, and their holds end with ErrLost. Until then they work
// on, beside whoever acquires. A hold that begins after ForceUnlock has looked is not touched.
//
// The errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not
// answered. It may or may not have happened, and may be repeated.
func (l *ReadLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.primitive.ForceUnlock(ctx)
}

// ForceUnlock ends the write hold, and read holds of the same owner, wakes waiters, and
// reports whether there was one. While others read it does nothing, and reports false.
//
// The former holders are not asked. Those of this library learn of it at their next renewal,
// a third of their lease later at most, and their holds end with ErrLost. Until then they work
// on, beside whoever acquires. A hold that begins after ForceUnlock has looked is not touched.
//
// The errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not
// answered. It may or may not have happened, and may be repeated.
func (l *WriteLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.primitive.ForceUnlock(ctx)
}

// RemainingLease asks the server how long the lock as a whole stays held, by readers or a
// writer, if nobody renews it: 0 if it is free, [NoExpiry] if its key has lost its expiry,
// which only a foreign command can do. Holders that are alive renew their leases, so the lock
// may stay held for longer.
//
// The errors are those of Inspect.
func (l *ReadLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	return l.primitive.RemainingLease(ctx)
}

// Inspect asks the server who reads and who writes: it shows both sides of the lock, and for
// each [Holder] on which side it is. The answer may be out of date when it arrives. A lock
// that is free has the kind [KindNone] and no holders.
//
// It is repeated for Options.RetryBudget while the server is in trouble. The error matches
// ErrUnavailable if the server could not be asked until then or until ctx ended, ErrClosed,
// ErrWrongKind if the key is another kind of object (the Inspection then says what it is),
// ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server refuses.
func (l *ReadLock) Inspect(ctx context.Context) (Inspection, error) {
	return l.primitive.Inspect(ctx)
}

// RemainingLease asks the server how long the lock as a whole stays held, by readers or a
// writer, if nobody renews it: 0 if it is free, [NoExpiry] if its key has lost its expiry,
// which only a foreign command can do. Holders that are alive renew their leases, so the lock
// may stay held for longer.
//
// The errors are those of Inspect.
func (l *WriteLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	return l.primitive.RemainingLease(ctx)
}

// Inspect asks the server who reads and who writes: it shows both sides of the lock, and for
// each [Holder] on which side it is. The answer may be out of date when it arrives. A lock
// that is free has the kind [KindNone] and no holders.
//
// It is repeated for Options.RetryBudget while the server is in trouble. The error matches
// ErrUnavailable if the server could not be asked until then or until ctx ended, ErrClosed,
// ErrWrongKind if the key is another kind of object (the Inspection then says what it is),
// ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server refuses.
func (l *WriteLock) Inspect(ctx context.Context) (Inspection, error) {
	return l.primitive.Inspect(ctx)
}

// evictBatch is how many holders one script removes, so that none takes long.
const evictBatch = 200

// rwEvictions takes all holders out of a read/write lock.
func rwEvictions(names keys, holders []Holder, publish string) (calls []call) {
	keys := names.rwKeys()
	for len(holders) > 0 || calls == nil {
		some := holders[:min(len(holders), evictBatch)]
		holders = holders[len(some):]
		args := []string{publish, rwChannel(names.key)}
		for _, h := range some {
			args = append(args, h.field())
		}
		calls = append(calls, call{rwEvict, keys, args})
	}
	return calls
}

// field is the holder in the hash of a read/write lock.
func (h Holder) field() string {
	if h.Write {
		return h.Owner.String() + ":write"
	}
	return h.Owner.String()
}

// heldBy tells the side on which a read/write lock is held.
func (i *Inspection) heldBy() Kind {
	for _, h := range i.Holders {
		if h.Write {
			return KindWrite
		}
	}
	return KindRead
}

// rwKeys are the lock and what this library keeps beside it.
func (k *keys) rwKeys() []string {
	tag := hashTag(k.key)
	return append(make([]string, 0, 6), k.key,
		"latchkey_rw_leases:"+tag, "latchkey_rw_writers:"+tag, "latchkey_rw:"+tag)
}

func rwChannel(key string) string { return "redisson_rwlock:" + hashTag(key) }

// leaseKeys is what the keys of an owner's read leases begin with.
func (k *keys) leaseKeys(owner string) string {
	return hashTag(k.key) + ":" + owner + ":rwlock_timeout:"
}

// appendLeaseKeys adds the lease keys of an owner's first read holds.
func (k *keys) appendLeaseKeys(to []string, owner string, holds int) []string {
	prefix := k.leaseKeys(owner)
	for i := range holds {
		to = append(to, prefix+strconv.Itoa(i+1))
	}
	return to
}

// staleText is how long a writer that waits counts as alive, and how long it bars
// readers the first time.
func (c *Client) staleText() string { return c.fairWaiters.stale }

// readProtocol is a reader in the hash of a read/write lock.
type readProtocol struct{}

func (readProtocol) acquireCall(t *ownership, lease time.Duration, count, _ int) call {
	p, holds := t.lock, strconv.Itoa(count)
	waits := "0"
	if t.waits {
		waits = "1"
	}
	return call{rwReadAcquire, append(p.rwKeys(), p.leaseKeys(t.wire)+holds),
		[]string{t.wire, t.client.leaseText(lease), holds, t.nestedNumber, waits, t.client.staleText()}}
}

func (readProtocol) releaseCall(t *ownership, count int, raise int64) call {
	p := t.lock
	return call{rwReadRelease, p.appendLeaseKeys(p.rwKeys(), t.wire, t.mostHolds()),
		[]string{t.wire, strconv.Itoa(count), t.nestedNumber, t.client.publish, p.channel, strconv.FormatInt(raise, 10)}}
}

func (readProtocol) renewalCall(t *ownership, lease time.Duration) call {
	return rwRenewal(t, "read", t.holds(), lease)
}

func (readProtocol) renewalCalls(t *ownership, lease time.Duration) []call {
	return rwRenewals(t, t.wire, t.holds(), lease)
}

// writeProtocol is the writer in the hash of a read/write lock.
type writeProtocol struct{}

func (writeProtocol) acquireCall(t *ownership, lease time.Duration, count, _ int) call {
	stale := ""
	if t.waits {
		stale = t.client.staleText()
	}
	return call{rwWriteAcquire, t.lock.rwKeys(),
		[]string{t.wire, t.client.leaseText(lease), strconv.Itoa(count), stale}}
}

func (writeProtocol) releaseCall(t *ownership, count int, raise int64) call {
	waiting := "0"
	if t.mayWait() {
		waiting = "1"
	}
	return call{rwWriteRelease, t.lock.rwKeys(),
		[]string{t.wire, strconv.Itoa(count), waiting, t.client.publish, t.lock.channel, strconv.FormatInt(raise, 10)}}
}

func (writeProtocol) renewalCall(t *ownership, lease time.Duration) call {
	return rwRenewal(t, "write", 0, lease)
}

func (writeProtocol) renewalCalls(t *ownership, lease time.Duration) []call {
	return rwRenewals(t, t.wire+":write", 0, lease)
}

// rwRenewals begin with the leases and end with the lock, which decides.
func rwRenewals(t *ownership, field string, reads int, lease time.Duration) []call {
	all := t.lock.rwKeys()
	renew := func(what, key string) call {
		return call{rwRenewKey, []string{key}, []string{what, field, strconv.FormatInt(millis(lease), 10), t.nestedNumber}}
	}
	calls := []call{renew("leases", all[1])}
	for _, key := range t.lock.appendLeaseKeys(nil, t.wire, reads) {
		calls = append(calls, renew("lease key", key))
	}
	if t.nestedNumber != "" {
		calls = append(calls, renew("notes", all[3]))
	}
	return append(calls, renew("lock", all[0]))
}

// rwRenewal names no key that need not be there: while the slot of the lock migrates, a
// script of several keys finds all of them on one node or is refused.
func rwRenewal(t *ownership, side string, reads int, lease time.Duration) call {
	all := t.lock.rwKeys()
	keys := t.lock.appendLeaseKeys(all[:2:2], t.wire, reads)
	if t.nestedNumber != "" {
		keys = append(keys, all[3])
	}
	return call{rwRenew, keys,
		[]string{t.wire, side, t.nestedNumber, strconv.FormatInt(millis(lease), 10), strconv.Itoa(reads)}}
}
