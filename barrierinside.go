package latchkey

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// barrier is a cyclic barrier: its parties wait for each other in generations.
type barrier struct {
	object.Object

	parties       int
	waiting, past string          // keys
	waitingSet    *ownership.Lock // the set of waiting parties, which are renewed as the owners of a lock are
	lastOver      atomic.Int64    // the last generation known to be over
}

// newBarrier returns the barrier with that name and number of parties.
func newBarrier(c *ownership.Engine, name string, parties int) barrier {
	o := object.New(c, keyspace.KindBarrier, name, barrierChannel)
	o.RefuseWholeTag("a barrier")
	o.Names.Invalid = errors.Join(o.Names.Invalid, request.CheckNumber("%d parties", parties, 1))
	tag := keyspace.Tag(o.Names.Key)
	waiting := "latchkey_barrier_waiting:" + tag
	names := keyspace.OfKey(name, waiting)
	names.Channel, names.Invalid = o.Names.Channel, o.Names.Invalid
	return barrier{Object: o, parties: parties, waiting: waiting, past: "latchkey_barrier_past:" + tag,
		waitingSet: ownership.LockOf(c, barrierSpec, names)}
}

func barrierChannel(key string) string { return "latchkey_barrier:" + keyspace.Tag(key) }

// all returns the keys of the barrier.
func (b *barrier) all() []string { return []string{b.Names.Key, b.waiting, b.past} }

// noteOver notes that a generation is over, so that it does not go on if a failover brings it back.
func (b *barrier) noteOver(generation int64) {
	for known := b.lastOver.Load(); known < generation; known = b.lastOver.Load() {
		if b.lastOver.CompareAndSwap(known, generation) {
			return
		}
	}
}

// await arrives, and waits until the generation is complete.
func (b *barrier) await(ctx context.Context, settings []request.Setting) (arrival, error) {
	p, err := b.beginParty(ctx, "await", "", settings)
	if err != nil {
		return arrival{}, err
	}
	defer b.Client.Working.Done()
	if err = p.meet(ctx, arrivingParty{p}); err != nil {
		return arrival{}, err
	}
	return p.arrival, nil
}

// beginParty begins a call with a new party. Unless it fails, the caller ends the call with
// client.working.Done.
func (b *barrier) beginParty(ctx context.Context, verb, stage string, settings []request.Setting) (*barrierAwaiter, error) {
	r, err := request.New(b.Client.Config.Lease, true, settings)
	if err = errors.Join(b.Names.Invalid, err); err == nil {
		err = b.Begin(ctx)
	}
	if err != nil {
		return nil, b.NotBegun(ctx, verb, 0, err)
	}
	return b.newParty(verb, stage, &r), nil
}
