package admin

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/labels"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Waiter is an owner that waits for a lock. Waiter of the root explains the fields.
type Waiter struct {
	Owner   identity.Owner
	Label   string
	Mine    bool
	Caller  identity.Owner
	Age     time.Duration
	Alive   time.Duration
	Permits int
}

// ListWaiters lists waiters as read does, and describes them.
func ListWaiters(
	ctx context.Context, c *core.Parts, names *keyspace.Keys,
	read func(context.Context, *core.Parts, *keyspace.Keys) ([]Waiter, error),
) ([]Waiter, error) {
	const verb = "waiters"
	err := names.Invalid
	if err == nil {
		err = c.Begin(ctx)
	}
	if err != nil {
		return nil, fault.Op(verb, names.Name, err)
	}
	defer c.Done()
	all, err := read(ctx, c, names)
	if err != nil {
		return nil, fault.Op(verb, names.Name, err)
	}
	describeWaiters(ctx, c, all)
	return all, nil
}

// AllWaiters reads the queues that exist under a name.
func AllWaiters(ctx context.Context, c *core.Parts, names *keyspace.Keys) ([]Waiter, error) {
	fair, err := FairWaiters(ctx, c, names)
	if err != nil {
		return nil, err
	}
	others, err := queuedWaiters(ctx, c, names)
	if err != nil {
		return nil, err
	}
	permits, err := PermitWaiters(ctx, c, names)
	if err != nil && !outcome.HasCode(err, "NOPERM") { // a user that may only use locks
		return nil, err
	}
	return slices.Concat(fair, others, permits), nil
}

// QueueOf returns what reads the queue of a kind of lock.
func QueueOf(kind keyspace.Kind) func(context.Context, *core.Parts, *keyspace.Keys) ([]Waiter, error) {
	if kind == keyspace.KindFair {
		return FairWaiters
	}
	return queuedWaiters
}

// FairWaiters reads the queue of a fair lock.
func FairWaiters(ctx context.Context, c *core.Parts, names *keyspace.Keys) ([]Waiter, error) {
	return readQueue(ctx, c, names, keyspace.KindLock, script.NewCall(script.FairWaiters, names.FairKeys()))
}

// queuedWaiters reads the queue of a lock that is not fair. A page may repeat waiters of the one
// before.
func queuedWaiters(ctx context.Context, c *core.Parts, names *keyspace.Keys) ([]Waiter, error) {
	keys := []string{names.Queue(), keyspace.WritersKey(keyspace.Tag(names.Key))}
	all, err := readQueue(ctx, c, names, keyspace.KindLock, script.NewCall(script.ListWaiters, keys))
	listed := map[identity.Owner]bool{}
	return slices.DeleteFunc(all, func(w Waiter) bool {
		again := listed[w.Owner]
		listed[w.Owner] = true
		return again
	}), err
}

// PermitWaiters reads the queue of a semaphore whose permits have ids.
func PermitWaiters(ctx context.Context, c *core.Parts, names *keyspace.Keys) ([]Waiter, error) {
	keys := names.FairPermitKeys()[2:4]
	all, err := readQueue(ctx, c, names, keyspace.KindSemaphore, script.NewCall(script.PermitWaiters, keys))
	for i, w := range all {
		all[i].Permits = len(identity.GroupOf(w.Owner.String()))
	}
	return all, err
}

// readQueue reads a queue of a lock or semaphore of that kind.
func readQueue(
	ctx context.Context, c *core.Parts, names *keyspace.Keys, kind keyspace.Kind, read script.Call,
) (all []Waiter, err error) {
	err = script.Pages(func(positions []string) (size int64, err error) {
		read.Args = positions
		a, err := c.Send(ctx, read)
		if err != nil {
			return 0, c.Inspector.WrongKind(ctx, names, kind, err)
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
			Owner: identity.Of(owner),
			Age:   max(time.Duration(age)*time.Microsecond, -1),
			Alive: time.Duration(max(aliveFor, 0)) * time.Millisecond,
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
func describeWaiters(ctx context.Context, c *core.Parts, all []Waiter) {
	named := owners.Of(c).Named()
	ownerOf := func(w Waiter) identity.Owner { return w.Owner }
	labels.DescribeEach(ctx, c.Labels, 0, [][]Waiter{all}, ownerOf, func(w *Waiter, d labels.Description) {
		record, _ := w.Owner.Record()
		w.Label, w.Caller = d.Label, named[w.Owner]
		w.Mine = !w.Caller.IsZero() || record == identity.RecordOfClient(c.ID)
	})
}
