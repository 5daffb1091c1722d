package latchkey

import (
	"context"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Waiters lists the owners that wait in the queues of a lock, whatever kind of lock it is, in their
// order, or of a fair semaphore; nil if there are none. Those of a fair lock come first, as [FairLock.Waiters] lists them. The
// owners that wait for a mutex or another lock are those of clients of this library, one of each client,
// whose other goroutines stand behind it in memory. No queue has the waiters of a
// semaphore that is not fair or a latch, readers, and Redisson's waiters for a lock that is not fair: [Object] has how many listen.
//
// It asks the server 500 waiters at a time. In a list of more than 500, waiters that come or go meanwhile may
// be missing. It changes nothing. Labels are read as [FairLock.Waiters] reads them. The entry of a client that waits for a lock
// that is not fair is Mine for each of its goroutines, and By is the owner of the first of them. The errors are those of FairLock.Waiters.
func (c *Client) Waiters(ctx context.Context, name string) ([]Waiter, error) {
	all, err := c.NewFairLock(name).waitersOnServer(ctx)
	if err != nil {
		return nil, err
	}
	names, _ := c.options.keysOf(name) // which the fair lock has found to be valid
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
		if err != nil && !transport.HasCode(err, "NOPERM") { // a user of locks alone
			return nil, fail("waiters", name, err)
		}
		all = append(all, permits...)
		c.describeWaiters(ctx, all)
		return all, nil
	}
}

// queueOf asks for one page of those who wait for a lock that is not fair.
func (c *Client) queueOf(ctx context.Context, names *keys, from int) ([]Waiter, int64, error) {
	sent := []string{names.queue, writersKey(transport.HashTag(names.key))}
	a, err := c.sender.Call(ctx, c.closing, listWaiters, sent, []string{strconv.Itoa(from), strconv.Itoa(from + waitersPage - 1)})
	if err != nil {
		return nil, 0, c.wrongKind(ctx, names, KindLock, err)
	}
	return readWaiters(a.Message)
}

// describeWaiters puts to waiters what they are called, and which of them are of this client.
func (c *Client) describeWaiters(ctx context.Context, all []Waiter) {
	owners := make([]Owner, len(all))
	for i, w := range all {
		owners[i] = w.Owner
	}
	said, named := c.describe(ctx, owners), c.registry.named()
	for i := range all {
		w := &all[i]
		w.Label = said[w.Owner].label
		w.By = named[w.Owner]
		record, _ := recordOf(w.Owner)
		w.Mine = !w.By.IsZero() || record == c.record.id
	}
}
