// Package barrier has the barrier: its parties, the generations in which they wait for each other,
// and the two generations of a Do.
package barrier

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
)

// Barrier is a cyclic barrier: its parties wait for each other in generations.
type Barrier struct {
	object.Object

	Parties       int
	Waiting, Past string          // keys
	waitingSet    *ownership.Lock // the set of waiting parties, which are renewed as the owners of a lock are
	lastOver      atomic.Int64    // the last generation known to be over
}

// New returns the barrier with that name and number of parties.
func New(c *core.Parts, name string, parties int) Barrier {
	o := object.New(c, keyspace.KindBarrier, name, barrierChannel)
	o.RefuseWholeTag("a barrier")
	o.Names.Invalid = errors.Join(o.Names.Invalid, request.CheckNumber("%d parties", parties, 1))
	tag := keyspace.Tag(o.Names.Key)
	waiting := "latchkey_barrier_waiting:" + tag
	names := keyspace.OfKey(name, waiting)
	names.Channel, names.Invalid = o.Names.Channel, o.Names.Invalid
	return Barrier{Object: o, Parties: parties, Waiting: waiting, Past: "latchkey_barrier_past:" + tag,
		waitingSet: ownership.LockOf(c, barrierSpec, names)}
}

func barrierChannel(key string) string { return "latchkey_barrier:" + keyspace.Tag(key) }

// All returns the keys of the barrier.
func (b *Barrier) All() []string { return []string{b.Names.Key, b.Waiting, b.Past} }

// GenerationEnded remembers that a generation is over, so that it does not go on if a failover
// brings it back.
func (b *Barrier) GenerationEnded(generation int64) {
	for known := b.lastOver.Load(); known < generation; known = b.lastOver.Load() {
		if b.lastOver.CompareAndSwap(known, generation) {
			return
		}
	}
}

// Await arrives, and waits until the generation is complete.
func (b *Barrier) Await(ctx context.Context, settings []request.Setting) (Arrival, error) {
	p, err := b.beginParty(ctx, "await", "", settings)
	if err != nil {
		return Arrival{}, err
	}
	defer b.Client.Done()
	if err = p.meet(ctx, arrivingParty{p}); err != nil {
		return Arrival{}, err
	}
	return p.arrival, nil
}

// beginParty begins a call with a new party. Unless it fails, the caller ends the call with
// Done of the client.
func (b *Barrier) beginParty(ctx context.Context, verb, stage string, settings []request.Setting) (*Party, error) {
	r, err := request.New(b.Client.Config.Lease, 0, true, settings)
	if err = errors.Join(b.Names.Invalid, err); err == nil {
		err = b.Begin(ctx)
	}
	if err != nil {
		return nil, b.NotBegun(ctx, verb, 0, err)
	}
	return b.NewParty(verb, stage, &r), nil
}
