package latchkey

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
)

// Barrier lets a fixed number of parties wait for each other, again and again, like Java's
// CyclicBarrier. The parties are goroutines in any number of processes. Redisson has nothing like
// it.
//
// A barrier is used in generations. The first Await begins one. When all parties wait, the
// generation is complete: they go on, and the next Await begins the next generation. A generation
// breaks if a party crashes, gives up or is closed with its client, if somebody calls Reset, or if
// the server loses the generation. All parties that wait in it then get ErrBroken. A broken
// generation is over too, and the next Await begins the next one: you need not repair the barrier.
//
// No party goes on before all parties of its generation have arrived. While a party waits, its
// client renews a lease of Options.Lease for it; a party whose process dies breaks its generation
// when that lease ends. The same is true while a party runs the function of its [Barrier.Do]. The
// barrier does not know of a party that dies before it arrives: the others wait for it until their
// contexts end or the time of [Wait] is over.
type Barrier struct {
	synchronizer

	n             int          // parties
	waiting, past string       // keys
	waitingSet    *primitive   // the set of waiting parties, which are renewed as the owners of a lock are
	lastOver      atomic.Int64 // the last generation known to be over
}

// NewBarrier returns the barrier with that name and number of parties, from 1 to 2147483647. It
// sends nothing. All parties must give the same number. If braces enclose the whole name, as in
// {x}, every call returns ErrInvalid, because the barrier would share keys with x.
func (c *Client) NewBarrier(name string, parties int) *Barrier {
	o := newSynchronizer(c.engine, keyspace.KindBarrier, name, barrierChannel)
	o.refuseWholeTag("a barrier")
	o.names.Invalid = errors.Join(o.names.Invalid, request.CheckNumber("%d parties", parties, 1))
	tag := keyspace.Tag(o.names.Key)
	b := &Barrier{synchronizer: o, n: parties, waiting: "latchkey_barrier_waiting:" + tag, past: "latchkey_barrier_past:" + tag}
	names := keyspace.OfKey(name, b.waiting)
	names.Channel, names.Invalid = b.names.Channel, b.names.Invalid
	b.waitingSet = primitiveOf(c.engine, barrierSpec, names)
	return b
}

func barrierChannel(key string) string { return "latchkey_barrier:" + keyspace.Tag(key) }

// Parties returns how many parties make a generation complete.
func (b *Barrier) Parties() int { return b.n }

// noteOver notes that a generation is over, so that it does not go on if a failover brings it back.
func (b *Barrier) noteOver(generation int64) {
	for known := b.lastOver.Load(); known < generation; known = b.lastOver.Load() {
		if b.lastOver.CompareAndSwap(known, generation) {
			return
		}
	}
}

// Arrival is a place in a generation that has become complete.
type Arrival struct {
	// Generation is the same for all parties of a generation. It grows from one generation to
	// the next, but not by one.
	Generation int64
	// Index is how many parties had arrived before: 0 for the first, Parties-1 for the last.
	// No two parties of a generation have the same Index.
	Index int
	// Parties is the number of parties in the generation.
	Parties int
}

// Last reports whether this party was the last to arrive. Exactly one party of each generation is
// the last; it may do work for all of them. The others do not wait for that work: if they must, let
// all parties await the barrier once more.
func (a Arrival) Last() bool { return a.Index == a.Parties-1 }

// Await arrives at the barrier and waits until all parties of the generation have arrived, ctx
// ends, or the time of [Wait] is over. Without either limit it waits forever. The last party to
// arrive does not wait.
//
// A nil error means that the generation is complete. After any other error this party is no longer
// in the generation. The error matches one of
//
//   - ErrBroken: something other than this call broke the generation
//   - ErrNotAcquired: not all parties had arrived when ctx ended (the error then also matches that
//     of ctx) or the time of Wait was over. This call has broken the generation: the others get
//     ErrBroken. While the parties of a [Barrier.Do] run their functions, the call waits for them
//     to be done and breaks nothing
//   - ErrUnavailable: the server could not be reached or did not answer in time. If it is unknown
//     whether the others go on or get ErrBroken, the error also matches ErrUnknownOutcome; the party
//     leaves in the background, or when its lease ends
//   - ErrClosed: the client is closed, or was closed during the call, which broke the generation
//   - ErrInvalid: the name, the number of parties or an option is unusable, or the barrier has
//     another number of parties (the text then names both), or the other parties call Do. Nothing
//     was changed
//   - ErrWrongKind: the key holds something else
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change
//
// If ctx ends when the generation is already complete, Await succeeds, because the other parties
// have gone on. To find out, it queries the server once more, for up to Options.RetryBudget. If ctx
// had ended before the call, nothing was sent, and the error matches only that of ctx.
//
// An arrival counts once, however often it is sent. Each Await costs the server one script for the
// arrival and one query when the generation ends. While they wait, all parties of a client together
// poll as often as one would. Each party's lease is renewed in addition.
func (b *Barrier) Await(ctx context.Context, options ...BarrierOption) (Arrival, error) {
	p, err := b.beginParty(ctx, "await", "", options)
	if err != nil {
		return Arrival{}, err
	}
	defer b.client.Done()
	if err = p.meet(ctx, arrivingParty{p}); err != nil {
		return Arrival{}, err
	}
	return p.arrival, nil
}

// beginParty begins a call with a new party. Unless it fails, the caller ends the call with
// client.done.
func (b *Barrier) beginParty(ctx context.Context, verb, stage string, options []BarrierOption) (*barrierAwaiter, error) {
	r, err := request.New(b.client.Config.Lease, true, settingsOf(options))
	if err = errors.Join(b.names.Invalid, err); err == nil {
		err = b.begin(ctx)
	}
	if err != nil {
		return nil, b.notBegun(ctx, verb, 0, err)
	}
	return b.newParty(verb, stage, &r), nil
}
