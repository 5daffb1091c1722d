package latchkey

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// FairLock is a re-entrant lock that is granted in the order in which it was asked
// for, among all waiters of all processes: on the wire Redisson's fair lock. What
// holds for [Lock] holds for it, besides the order, and it costs a waiter more: each
// one stands in a queue in Redis.
//
// The order is that in which the server saw the waiters come. One that is alive
// keeps its place however long it waits, and gets it back if Redis forgot it. One
// that gives no sign of life for Options.StaleWaiterTimeout, because its process was
// killed or cut off, is passed over; if many are, that time passes once, not once for
// each. The sign of life of a waiter of Redisson is its subscription. A TryLock that does not wait succeeds only if nobody waits.
//
// Do not use a name as a FairLock here and as another lock there: they exclude each
// other, but the other lock knows no queue and wakes nobody in it.
type FairLock struct{ *primitive }

var _ Locker = (*FairLock)(nil)

// NewFairLock returns the fair lock of that name. Nothing is sent.
func (c *Client) NewFairLock(name string) *FairLock {
	return &FairLock{newPrimitive(c, fairKind, name)}
}

// NewFencedFairLock returns the fair lock of that name, with fencing tokens as a
// [FencedLock] has them. Redisson has no such lock; to its fair lock, with which it
// shares the name, it is one. Nothing is sent.
func (c *Client) NewFencedFairLock(name string) *FairLock {
	return &FairLock{newPrimitive(c, fencedFairKind, name)}
}

var (
	fairKind = &kind{kind: KindFair, family: KindFair, stored: KindLock, protocol: fairProtocol{},
		renew: renewScript, reentrant: true, queued: true}
	fencedFairKind = &kind{kind: KindFair, family: KindFair, stored: KindLock, protocol: fairProtocol{},
		renew: renewScript, reentrant: true, queued: true, fenced: true}
)

// fairProtocol is the hash of a re-entrant lock with a queue beside it.
type fairProtocol struct{ hashProtocol }

func (fairProtocol) acquire(t *tenure, lease time.Duration, count, round int) call {
	if count > 1 {
		return hashProtocol{}.acquire(t, lease, count, round)
	}
	stale, ticket := "", ""
	if t.place != nil {
		stale, ticket = t.client.lines.stale, t.place.ticketText()
	}
	c := call{fairAcquire, t.lock.fairKeys(), append(acquireArgs(t, lease, count),
		t.client.publish, t.lock.waiterChannel(""), stale, ticket, t.client.lines.shift)}
	if t.lock.kind.fenced {
		c.keys = append(c.keys, t.lock.token)
	}
	return c
}

func (fairProtocol) release(t *tenure, count int, raise int64) call {
	waiting := "0"
	if t.mayWait() {
		waiting = "1"
	}
	return call{fairRelease, t.lock.fairKeys(), append(releaseArgs(t, count, raise), waiting, t.client.lines.stale)}
}

// fairKeys are those of every script for a fair lock.
func (k *keys) fairKeys() []string {
	tag := hashTag(k.key)
	return append(make([]string, 0, 5), k.key,
		"redisson_lock_queue:"+tag, "redisson_lock_timeout:"+tag, "latchkey_fair:"+tag)
}

// waiterChannel is where the lock tells an owner that its turn has come.
func (k *keys) waiterChannel(owner string) string { return k.channel + ":" + owner }

// Waiter is an owner that waits for a fair lock.
type Waiter struct {
	Owner string
	// Age is how long it has been waiting, or NoAge for a waiter of Redisson, which
	// does not say.
	Age time.Duration
	// Alive is for how long it keeps its place without another sign of life, 0 if it
	// will be passed over.
	Alive time.Duration
}

// NoAge is the Age of a waiter that is not of this library.
const NoAge = time.Duration(-1)

// waitersPage is how many waiters are asked for at a time, so that no list holds the
// server up.
const waitersPage = 500

// Waiters lists who waits for the lock, in the order in which it will be granted. A
// long list is read in pieces, and waiters who come or go meanwhile may be missed or
// be named where they were.
func (l *FairLock) Waiters(ctx context.Context) ([]Waiter, error) {
	if l.invalid != nil {
		return nil, fail("waiters", l.name, l.invalid)
	}
	if !l.client.begin() {
		return nil, fail("waiters", l.name, ErrClosed)
	}
	defer l.client.working.Done()
	var all []Waiter
	for from := 0; ; from += waitersPage {
		args := []string{strconv.Itoa(from), strconv.Itoa(from + waitersPage - 1)}
		a, err := l.client.caller.call(ctx, l.client.closing, fairWaiters, l.fairKeys(), args)
		if err != nil {
			return nil, fail("waiters", l.name, l.client.wrongKind(ctx, l.keys, KindLock, err))
		}
		page, size, err := readWaiters(a.message)
		if err != nil {
			return nil, fail("waiters", l.name, err)
		}
		all = append(all, page...)
		if int64(from+waitersPage) >= size {
			return all, nil
		}
	}
}

// readWaiters takes the reply of fair_waiters.lua apart. Those who have left are
// still in the queue, but wait no longer.
func readWaiters(reply rueidis.RedisMessage) (page []Waiter, size int64, err error) {
	parts, err := reply.ToArray()
	if err != nil || len(parts)%3 != 1 {
		return nil, 0, errReply
	}
	size, err = parts[0].AsInt64()
	for i := 1; i < len(parts) && err == nil; i += 3 {
		var age, alive int64
		w := Waiter{Age: NoAge}
		w.Owner, err = parts[i].ToString()
		age, _ = parts[i+1].AsInt64()
		alive, _ = parts[i+2].AsInt64()
		if age >= 0 {
			w.Age = time.Duration(age) * time.Microsecond
		}
		w.Alive = time.Duration(max(alive, 0)) * time.Millisecond
		if alive > -leftLongAgo {
			page = append(page, w)
		}
	}
	return page, size, err
}

// leftLongAgo is more ms than any waiter can have been dead: the sign of life of one
// that has left is set to the beginning of time.
const leftLongAgo = 10 * 365 * 24 * 3600 * 1000
