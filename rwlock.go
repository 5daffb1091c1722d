package latchkey

import (
	"context"
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
// A waiting writer keeps new readers out, but not forever: for one
// Options.StaleWaiterTimeout at first, then, after a pause of a fifth of it, for twice as
// long, up to a minute at a time. So a writer gets in when the readers that are inside leave
// within such a time, and no reader is kept out for longer. A waiting writer that has
// died keeps readers out for one StaleWaiterTimeout. After a write, or a turn of them, readers
// that have been waiting go first, all together; the next writer waits for them, or for a tenth of
// a second if none comes. Readers that come meanwhile wait for the end of the next write. So
// writers cannot keep readers out either. Readers of Redisson do not know of this and are never
// kept out.
//
// Writers are served as those who wait for a [Lock]: goroutines of a client pass the write hold on in
// memory for a turn, while none of them waits to read; then a release gives the lock to the next
// client whose writers wait.
//
// Each read hold has its own lease. A reader that crashes stops blocking writers when its
// lease is over, whatever other readers do.
//
// Goroutines of one client read along with each other: while one of them reads, others that
// want the same are let in without asking the server, and the last one to leave releases the
// lock. For the server, and for [Client.Inspect], they are one reader. That lasts for a turn
// ([Options].Turn) from when the server has let the first of them in, so that a writer waits no
// longer for that. A hold with [MaxHold], with another [Lease], with an owner that was chosen
// ([By], [WithOwner]) or asked for ([Hold.Owner]), or of an owner that has written is not shared.
//
// Owners of other clients cannot join a hold ([By] with one is an ErrInvalid):
// Redisson's format has no room for it.
type RWLock struct {
	read  *ReadLock
	write *WriteLock
}

var (
	_ Locker = (*ReadLock)(nil)
	_ Locker = (*WriteLock)(nil)
)

var (
	// A script renews fewer of them than of others: a reader takes four times as long.
	readSpec = &spec{kind: KindRead, family: KindRWLock, stored: KindRWLock, protocol: readProtocol{},
		renew: rwRenew, channel: rwChannel, renewals: renewBatch / 4, reentrant: true, side: KindRead, line: sharedLine, joint: true, along: true,
		resolve: resolveSide, fresh: freshOwner, wait: waitToRead, ceiling: signOfLife}
	writeSpec = &spec{kind: KindWrite, family: KindRWLock, stored: KindRWLock, protocol: writeProtocol{},
		renew: rwRenew, channel: rwChannel, renewals: renewBatch / 4, reentrant: true, side: KindWrite, line: exclusiveLine, joint: true,
		passes: true, handsOver: true,
		resolve: resolveSide, fresh: freshOwner, ceiling: signOfLife}
)

// signOfLife is how often a reader or writer that waits asks at least, so that the server knows of it
// when a write ends.
func signOfLife(c *Client) time.Duration { return c.options.StaleWaiterTimeout / 3 }

// NewRWLock returns the read/write lock of that name. Nothing is sent.
func (c *Client) NewRWLock(name string) *RWLock {
	read, write := newPrimitive(c, readSpec, name), newPrimitive(c, writeSpec, name)
	c.handover.addSpec("w", writeSpec)
	return &RWLock{read: &ReadLock{read}, write: &WriteLock{write}}
}

// Name returns the name as the program gave it.
func (l *RWLock) Name() string { return l.read.Name() }

// Reader returns the side to read under. It does not lock: call [ReadLock.Lock] on it.
func (l *RWLock) Reader() *ReadLock { return l.read }

// Writer returns the side to write under. It does not lock: call [WriteLock.Lock] on it.
func (l *RWLock) Writer() *WriteLock { return l.write }

func (p *primitive) isLocked(ctx context.Context, write bool) (bool, error) {
	i, err := p.inspect(ctx)
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

// heldBy tells the side on which a read/write lock is held.
func (i *Inspection) heldBy() Kind {
	for _, h := range i.Holders {
		if h.Write {
			return KindWrite
		}
	}
	return KindRead
}
