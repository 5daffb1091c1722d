package latchkey

import (
	"context"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Waiters lists the owners in the queues of a lock of any kind, or of a fair semaphore, in queue order; nil if
// there are none. The waiters of a fair lock come first, as [FairLock.Waiters] lists them. For a mutex or
// another lock that is not fair, the list has one owner for each client of this library; its other goroutines
// wait behind it in memory. Some waiters are in no queue: those of a latch or of a semaphore that is not fair,
// readers, and Redisson's waiters for a lock that is not fair. [Object] counts the clients that listen.
//
// Waiters reads 500 waiters at a time. In a list of more than 500, waiters that come or go during the call may
// be missing. It changes nothing. Labels are read as [FairLock.Waiters] reads them. The entry of a client that
// waits for a lock that is not fair is Mine for each of its goroutines, and By is the owner of the first of
// them. The errors are those of FairLock.Waiters.
func (c *Client) Waiters(ctx context.Context, name string) ([]Waiter, error) {
	all, err := c.NewFairLock(name).waitersOnServer(ctx)
	if err != nil {
		return nil, err
	}
	names, _ := c.options.keysOf(name) // the fair lock has checked it
	if !c.begin() {
		return nil, fail("waiters", name, ErrClosed)
	}
	defer c.working.Done()
	listed := map[Owner]bool{}
	for from := 0; ; from += waitersPage {
		page, size, err := c.queueOf(ctx, names, from)
		if err != nil {
			return nil, fail("waiters", name, err)
		}
		for _, w := range page {
			if !listed[w.Owner] {
				listed[w.Owner] = true
				all = append(all, w)
			}
		}
		if int64(from+waitersPage) < size {
			continue
		}
		permits, err := c.permitWaiters(ctx, names)
		if err != nil && !transport.HasCode(err, "NOPERM") { // a user that may only use locks
			return nil, fail("waiters", name, err)
		}
		all = append(all, permits...)
		c.describeWaiters(ctx, all)
		return all, nil
	}
}

// queueOf reads one page of the queue of a lock that is not fair.
func (c *Client) queueOf(ctx context.Context, names *keys, from int) ([]Waiter, int64, error) {
	sent := []string{names.queue, writersKey(transport.HashTag(names.key))}
	a, err := c.sender.Call(ctx, c.closing, listWaiters, sent, []string{strconv.Itoa(from), strconv.Itoa(from + waitersPage - 1)})
	if err != nil {
		return nil, 0, c.wrongKind(ctx, names, KindLock, err)
	}
	return readWaiters(a.Message)
}

// describeWaiters adds labels to waiters, and marks those of this client.
func (c *Client) describeWaiters(ctx context.Context, all []Waiter) {
	owners := make([]Owner, len(all))
	for i, w := range all {
		owners[i] = w.Owner
	}
	said, named := c.describe(ctx, owners, 0), c.registry.named()
	for i := range all {
		w := &all[i]
		w.Label = said[w.Owner].label
		w.By = named[w.Owner]
		record, _ := recordOf(w.Owner)
		w.Mine = !w.By.IsZero() || record == c.record.id
	}
}
