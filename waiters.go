package latchkey

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Waiter is an owner that waits for a lock.
type Waiter struct {
	// Owner is the owner that the waiter will be once it holds the lock.
	Owner Owner
	// Label is the label of the waiter's client, or "": see [Holder].
	Label string
	// Mine reports whether the waiter belongs to the client that listed it.
	Mine bool
	// By is the owner that the waiting call named, with [By] or [WithOwner], if Mine is true. A
	// program can find its own place with it. By is the zero Owner if the call named none. It
	// differs from Owner, since each acquisition has an owner of its own in Redis.
	By Owner
	// Age is how long the waiter has been waiting, by the clock of the server. It is 0 if AgeKnown
	// is false.
	Age time.Duration
	// AgeKnown is false for a waiter of Redisson, which does not record when it began to wait, and
	// for a waiter for a read/write lock whose place in the queue is lost.
	AgeKnown bool
	// Alive is how long the waiter keeps its place without another sign of life. It is 0 if the
	// waiter will be passed over, and NoExpiry in a queue that does not record this.
	Alive time.Duration
	// Permits is how many permits a waiter in the queue of a semaphore wants; 0 otherwise.
	Permits int
}

// Waiters lists the owners in the queues of a lock of any kind, or of a semaphore whose permits have ids, in
// queue order; nil if there are none. The waiters of a fair lock come first, as [FairLock.Waiters] lists them.
// For a mutex or another lock that is not fair, and for a [PermitSemaphore], the list has one owner for each
// client of this library; its other goroutines wait behind it in memory. Some waiters are in no queue: the
// goroutines of a client that holds the lock itself, if it is not fair, those of a latch, readers, and
// Redisson's waiters for a lock that is not fair. [Object] counts the clients that listen. It also counts the
// clients in the queue of a [Semaphore], which has no owners that Waiters could list.
//
// Waiters reads 500 waiters at a time. In a list of more than 500, waiters that come or go during the call may
// be missing. It changes nothing. Labels are read as [FairLock.Waiters] reads them. The entry of a client that
// waits for a lock that is not fair is Mine for each of its goroutines, and By is the owner of the first of
// them. The errors are those of FairLock.Waiters.
func (c *Client) Waiters(ctx context.Context, name string) ([]Waiter, error) {
	names, _ := c.engine.Config.Naming().Keys(name)
	return c.engine.waiters(ctx, names, (*engine).allWaiters)
}

// waiters lists waiters as read does, and describes them.
func (c *engine) waiters(ctx context.Context, names *keyspace.Keys, read func(*engine, context.Context, *keyspace.Keys) ([]Waiter, error)) ([]Waiter, error) {
	const verb = "waiters"
	err := names.Invalid
	if err == nil {
		err = c.Begin(ctx)
	}
	if err != nil {
		return nil, fault.Op(verb, names.Name, err)
	}
	defer c.Done()
	all, err := read(c, ctx, names)
	if err != nil {
		return nil, fault.Op(verb, names.Name, err)
	}
	c.describeWaiters(ctx, all)
	return all, nil
}

// allWaiters reads the queues that exist under a name.
func (c *engine) allWaiters(ctx context.Context, names *keyspace.Keys) ([]Waiter, error) {
	fair, err := c.fairWaiters(ctx, names)
	if err != nil {
		return nil, err
	}
	others, err := c.queuedWaiters(ctx, names)
	if err != nil {
		return nil, err
	}
	permits, err := c.permitWaiters(ctx, names)
	if err != nil && !transport.HasCode(err, "NOPERM") { // a user that may only use locks
		return nil, err
	}
	return slices.Concat(fair, others, permits), nil
}

// fairWaiters reads the queue of a fair lock.
func (c *engine) fairWaiters(ctx context.Context, names *keyspace.Keys) ([]Waiter, error) {
	return c.readQueue(ctx, names, keyspace.KindLock, script.NewCall(script.FairWaiters, names.FairKeys()))
}

// queuedWaiters reads the queue of a lock that is not fair. A page may repeat waiters of the one before.
func (c *engine) queuedWaiters(ctx context.Context, names *keyspace.Keys) ([]Waiter, error) {
	all, err := c.readQueue(ctx, names, keyspace.KindLock, script.NewCall(script.ListWaiters, []string{names.Queue(), keyspace.WritersKey(keyspace.Tag(names.Key))}))
	listed := map[Owner]bool{}
	return slices.DeleteFunc(all, func(w Waiter) bool {
		again := listed[w.Owner]
		listed[w.Owner] = true
		return again
	}), err
}

// permitWaiters reads the queue of a semaphore whose permits have ids.
func (c *engine) permitWaiters(ctx context.Context, names *keyspace.Keys) ([]Waiter, error) {
	all, err := c.readQueue(ctx, names, keyspace.KindSemaphore, script.NewCall(script.PermitWaiters, names.FairPermitKeys()[2:4]))
	for i, w := range all {
		all[i].Permits = len(identity.GroupOf(w.Owner.String()))
	}
	return all, err
}

// readQueue reads a queue of a lock or semaphore of that kind.
func (c *engine) readQueue(ctx context.Context, names *keyspace.Keys, kind keyspace.Kind, read script.Call) (all []Waiter, err error) {
	err = script.Pages(func(positions []string) (size int64, err error) {
		read.Args = positions
		a, err := c.Send(ctx, read)
		if err != nil {
			return 0, c.wrongKind(ctx, names, kind, err)
		}
		page, size, err := readWaiters(a.Message)
		all = append(all, page...)
		return size, err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// readWaiters parses the reply of lua/fair/waiters.lua, lua/permit/waiters.lua or
// lua/queue/list_waiters.lua. Waiters that have left are still in the queue; it leaves them out.
func readWaiters(reply rueidis.RedisMessage) (page []Waiter, size int64, err error) {
	parts, err := reply.ToArray()
	if err != nil || len(parts)%3 != 1 {
		return nil, 0, script.ErrReply
	}
	size, err = parts[0].AsInt64()
	for i := 1; i < len(parts) && err == nil; i += 3 {
		var owner string
		owner, err = parts[i].ToString()
		age, _ := parts[i+1].AsInt64()
		aliveFor, _ := parts[i+2].AsInt64()
		w := Waiter{
			Owner:    Owner(identity.Of(owner)),
			Age:      time.Duration(max(age, 0)) * time.Microsecond,
			AgeKnown: age >= 0,
			Alive:    time.Duration(max(aliveFor, 0)) * time.Millisecond,
		}
		if parts[i+2].IsNil() {
			w.Alive = lease.NoExpiry
		}
		if aliveFor > -leftLongAgo {
			page = append(page, w)
		}
	}
	return page, size, err
}

// leftLongAgo is longer, in ms, than any waiter can have been dead. When a waiter leaves, its sign
// of life is set to the beginning of time.
const leftLongAgo = 10 * 365 * 24 * 3600 * 1000

// describeWaiters adds labels to waiters, and marks those of this client.
func (c *engine) describeWaiters(ctx context.Context, all []Waiter) {
	named := c.registry.named()
	labels.DescribeEach(ctx, c.Labels, 0, [][]Waiter{all}, func(w Waiter) identity.Owner { return identity.Owner(w.Owner) }, func(w *Waiter, d labels.Description) {
		record, _ := identity.Owner(w.Owner).Record()
		w.Label, w.By = d.Label, Owner(named[identity.Owner(w.Owner)])
		w.Mine = !w.By.IsZero() || record == identity.RecordOfClient(c.ID)
	})
}
