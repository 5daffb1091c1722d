package latchkey

import (
	"context"
	"strconv"
	"time"
)

// RWLock is a read/write lock: many may read, or one may write. On the wire it is
// Redisson's RReadWriteLock. It hands out its two sides, which are locks.
//
// Both are re-entrant. Whoever writes may read as well ([Hold.Context] of a write
// hold, or an owner), and go on reading when it has stopped to write ([Hold.Downgrade]
// in one step). Whoever reads cannot write: to ask for it is ErrUpgrade at once, since
// it would wait for itself.
//
// A writer that waits keeps new readers out, but not for ever: for one
// Options.StaleWaiterTimeout at first, then, after a pause of a fifth of it, for twice as
// long, up to a minute at a time. So it gets in when the readers that are inside leave
// within such a time, and no reader is kept out for longer. A waiting writer that has
// died keeps readers out for one StaleWaiterTimeout. After a write, readers who have
// been waiting go first, all together; the next writer waits for them, or for a tenth of
// a second if none comes. So writers cannot keep readers out either. Redisson's readers know nothing of this and are never kept out.
//
// Each read hold has its own lease. A reader that crashes is no longer in the way when
// its lease is over, whatever others do.
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
	readKind = &kind{kind: KindRead, family: KindRWLock, stored: KindRWLock, protocol: readProtocol{},
		renew: rwRenew, reentrant: true, side: KindRead}
	writeKind = &kind{kind: KindWrite, family: KindRWLock, stored: KindRWLock, protocol: writeProtocol{},
		renew: rwRenew, reentrant: true, side: KindWrite}
)

// NewRWLock returns the read/write lock of that name. Nothing is sent.
func (c *Client) NewRWLock(name string) *RWLock {
	read, write := newPrimitive(c, readKind, name), newPrimitive(c, writeKind, name)
	for _, side := range []*primitive{read, write} {
		side.channel = rwChannel(side.key)
	}
	write.reader = read
	return &RWLock{read: &ReadLock{read}, write: &WriteLock{write}}
}

// Name returns the name as the program gave it.
func (l *RWLock) Name() string { return l.read.name }

// Reader returns the side to read under.
func (l *RWLock) Reader() *ReadLock { return l.read }

// Writer returns the side to write under.
func (l *RWLock) Writer() *WriteLock { return l.write }

// IsLocked reports whether anybody reads.
func (l *ReadLock) IsLocked(ctx context.Context) (bool, error) { return l.isLocked(ctx, false) }

// IsLocked reports whether anybody writes.
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

// ForceUnlock ends all read holds, unless somebody writes, wakes waiters, and reports
// whether there were any. Otherwise it is as [Locker] says.
func (l *ReadLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.primitive.ForceUnlock(ctx)
}

// ForceUnlock ends the write hold and read holds of the same owner, wakes waiters, and
// reports whether there was one. Otherwise it is as [Locker] says.
func (l *WriteLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.primitive.ForceUnlock(ctx)
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
		return h.Owner + ":write"
	}
	return h.Owner
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
func (c *Client) staleText() string { return c.lines.stale }

// readProtocol is a reader in the hash of a read/write lock.
type readProtocol struct{}

func (readProtocol) acquire(t *tenure, lease time.Duration, count, _ int) call {
	p, holds := t.lock, strconv.Itoa(count)
	waits := "0"
	if t.waits {
		waits = "1"
	}
	return call{rwReadAcquire, append(p.rwKeys(), p.leaseKeys(t.wire)+holds),
		[]string{t.wire, t.client.leaseText(lease), holds, t.nestedNumber, waits, t.client.staleText()}}
}

func (readProtocol) release(t *tenure, count int, raise int64) call {
	p := t.lock
	return call{rwReadRelease, p.appendLeaseKeys(p.rwKeys(), t.wire, t.mostHolds()),
		[]string{t.wire, strconv.Itoa(count), t.nestedNumber, t.client.publish, p.channel, strconv.FormatInt(raise, 10)}}
}

func (readProtocol) renewal(t *tenure, lease time.Duration) call {
	return rwRenewal(t, "read", t.holds(), lease)
}

func (readProtocol) renewals(t *tenure, lease time.Duration) []call {
	return rwRenewals(t, t.wire, t.holds(), lease)
}

// writeProtocol is the writer in the hash of a read/write lock.
type writeProtocol struct{}

func (writeProtocol) acquire(t *tenure, lease time.Duration, count, _ int) call {
	stale := ""
	if t.waits {
		stale = t.client.staleText()
	}
	return call{rwWriteAcquire, t.lock.rwKeys(),
		[]string{t.wire, t.client.leaseText(lease), strconv.Itoa(count), stale}}
}

func (writeProtocol) release(t *tenure, count int, raise int64) call {
	waiting := "0"
	if t.mayWait() {
		waiting = "1"
	}
	return call{rwWriteRelease, t.lock.rwKeys(),
		[]string{t.wire, strconv.Itoa(count), waiting, t.client.publish, t.lock.channel, strconv.FormatInt(raise, 10)}}
}

func (writeProtocol) renewal(t *tenure, lease time.Duration) call {
	return rwRenewal(t, "write", 0, lease)
}

func (writeProtocol) renewals(t *tenure, lease time.Duration) []call {
	return rwRenewals(t, t.wire+":write", 0, lease)
}

// rwRenewals begin with the leases and end with the lock, which decides.
func rwRenewals(t *tenure, field string, reads int, lease time.Duration) []call {
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
func rwRenewal(t *tenure, side string, reads int, lease time.Duration) call {
	all := t.lock.rwKeys()
	keys := t.lock.appendLeaseKeys(all[:2:2], t.wire, reads)
	if t.nestedNumber != "" {
		keys = append(keys, all[3])
	}
	return call{rwRenew, keys,
		[]string{t.wire, side, t.nestedNumber, strconv.FormatInt(millis(lease), 10), strconv.Itoa(reads)}}
}
