package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/renewal"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// RWLock is a read/write lock: many may read, or one may write. On the wire it is Redisson's RReadWriteLock.
// [RWLock.Reader] and [RWLock.Writer] return its two sides, which are locks; they do not lock.
//
// Both sides are re-entrant. A writer may also read (under [Hold.Context] of its write hold, or by its owner),
// and continue to read after it has released the write hold; [Hold.Downgrade] does both in one step. A reader
// cannot become a writer: it gets ErrUpgrade at once, since it would wait for itself.
//
// A waiting writer keeps new readers out, but not forever: for one Options.StaleWaiterTimeout at first, then,
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
// [Client.Inspect], they are one reader. That lasts for a turn ([Options].Turn) from when the server admitted
// the first of them, which bounds how much longer a writer waits. Some holds are not shared: those with
// [MaxHold], with a different [Lease], with an owner that was chosen ([By], [WithOwner]) or read
// ([Hold.Owner]), and those of an owner that has written.
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
	// A script renews fewer of these holds than of others: a reader takes four times as long.
	readSpec = &acquireSpec{
		spec: &spec{kind: keyspace.KindRead, family: keyspace.KindRWLock, stored: keyspace.KindRWLock, protocol: readProtocol{}, renewEach: readRenewals,
			renew: script.RWRenew, channel: rwChannel, renewals: renewal.MostInBatch / 4, reentrant: true, side: keyspace.KindRead, line: line.Shared, along: true},
		attempts: readProtocol{}, resolve: resolveSide, fresh: freshOwner, ceiling: signOfLife}
	writeSpec = &acquireSpec{
		spec: &spec{kind: keyspace.KindWrite, family: keyspace.KindRWLock, stored: keyspace.KindRWLock, protocol: writeProtocol{}, renewEach: writeRenewals,
			renew: script.RWRenew, channel: rwChannel, renewals: renewal.MostInBatch / 4, reentrant: true, side: keyspace.KindWrite, line: line.Exclusive,
			passes: true, handsOver: true, grantMark: "w"},
		attempts: writeProtocol{}, resolve: resolveSide, fresh: freshOwner, ceiling: signOfLife}
)

// signOfLife is the longest time between two requests of a waiting reader or writer, so that the server knows
// of it when a write ends.
func signOfLife(c *engine) time.Duration { return c.Config.StaleWaiterTimeout / 3 }

// NewRWLock returns the read/write lock with that name. It sends nothing.
func (c *Client) NewRWLock(name string) *RWLock {
	read, write := newBaseLock(c.engine, readSpec, name), newBaseLock(c.engine, writeSpec, name)
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
	i, err := l.inspect(ctx)
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
