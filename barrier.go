package latchkey

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Barrier lets a fixed number of parties, goroutines in any number of processes, wait for each
// other, again and again: as a CyclicBarrier does. Redisson has nothing like it.
//
// A barrier is used in generations. The first Await begins one; when as many parties wait as
// the barrier has, the generation is complete: all of them go on, and the next Await begins the
// next one. A generation that cannot become complete is broken, for all parties that wait in it
// (ErrBroken): a party has crashed, has given up or was closed, somebody has called Reset, or
// the server has lost it. A broken generation is over too, and the next Await begins the next
// one: you need not repair the barrier.
//
// No party goes on before all parties of its generation have arrived. While a party waits, its
// client renews a lease of Options.Lease for it; a party whose process dies breaks its
// generation when that lease is over. A party that dies before it arrives is not known here:
// the others wait for it, until their contexts end or the time of [Wait] is over.
type Barrier struct {
	object

	n             int    // parties
	waiting, past string // keys
	stand         *primitive
	lastOver      atomic.Int64 // the last generation that is known to be over
}

// NewBarrier returns the barrier of that name, for so many parties, from 1 to 2147483647. Nothing
// is sent. All parties must give the same number. A name that is as a whole in braces, such as {x}, is an
// ErrInvalid in each call: it would share keys with x.
func (c *Client) NewBarrier(name string, parties int) *Barrier {
	o := newObject(c, KindBarrier, name, barrierChannel)
	o.refuseWholeTag("a barrier")
	if parties < 1 || parties > maxCount {
		o.invalid = errors.Join(o.invalid, invalid("%d is not a number of parties", parties))
	}
	tag := transport.HashTag(o.key)
	b := &Barrier{object: o, n: parties, waiting: "latchkey_barrier_waiting:" + tag, past: "latchkey_barrier_past:" + tag}
	names := keysOfKey(name, b.waiting)
	names.channel, names.invalid = b.channel, b.invalid
	b.stand = &primitive{}
	b.stand.initOf(c, barrierSpec, names)
	return b
}

func barrierChannel(key string) string { return "latchkey_barrier:" + transport.HashTag(key) }

// Parties returns how many parties make a generation complete.
func (b *Barrier) Parties() int { return b.n }

// noteOver notes that a generation is over: it is not to go on where a failover brings it back.
func (b *Barrier) noteOver(generation int64) {
	for known := b.lastOver.Load(); known < generation; known = b.lastOver.Load() {
		if b.lastOver.CompareAndSwap(known, generation) {
			return
		}
	}
}

// Arrival is a place in a generation that has become complete.
type Arrival struct {
	// Generation is the same for all parties of a generation, and grows from one to the next,
	// not by one.
	Generation int64
	// Index is how many parties had arrived before: 0 for the first one, Parties-1 for the
	// last one. No two parties of a generation have the same.
	Index int
	// Parties is how many there were.
	Parties int
}

// Last reports whether this party was the last one to arrive. That is so for exactly one party
// of a generation, which may do work for all. The others do not wait for that: if
// they have to, await the barrier once more.
func (a Arrival) Last() bool { return a.Index == a.Parties-1 }

// Await arrives at the barrier, and waits until all parties of the generation have: until ctx
// ends or the time of [Wait] is over, and with neither without a limit. The last one to arrive
// does not wait.
//
// A nil error means that the generation is complete. After any other error this party is not in
// it any more. The error matches one of
//
//   - ErrBroken: the generation was broken, by something else than this call
//   - ErrNotAcquired: not all had arrived when ctx ended (the error then also matches that of
//     ctx) or the time of Wait was over. This call has broken the generation: the others get
//     ErrBroken
//   - ErrUnavailable: the server could not be asked or did not answer in time, or ctx had ended
//     before the call.
//     If it is not known whether the others go on or get ErrBroken, the error also matches
//     ErrUnknownOutcome; the party leaves in the background, or by the end of its lease
//   - ErrClosed: the client is closed, or was closed during the call, which has broken the
//     generation
//   - ErrInvalid: the name, the number of parties or an option cannot be used; or the barrier has
//     another number of parties, and the text names both. Nothing was changed
//   - ErrWrongKind: the key holds something else
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change
//
// A party whose ctx ends when the generation is complete already succeeds: the others have gone
// on. To find that out it asks the server once more, for up to Options.RetryBudget.
//
// An arrival counts once, however often it has to be sent. Each Await costs the server the
// arrival, and a question when the generation ends; while they wait, all parties of a client
// together cost what one does, and the renewal of their leases.
func (b *Barrier) Await(ctx context.Context, options ...BarrierOption) (Arrival, error) {
	const verb = "await"
	r, err := newRequest(b.client.options.Lease, true, settingsOf(options))
	if err = errors.Join(b.invalid, err); err == nil {
		err = b.begin()
	}
	if err != nil {
		return Arrival{}, fail(verb, b.name, err)
	}
	defer b.client.working.Done()
	began, parent := time.Now(), b.client.parentOf(ctx)
	arrival, err := b.awaitAs(ctx, verb, &r)
	b.observeCall(parent, EventOpened, 0, began, err)
	return arrival, err
}

// awaitAs is one Await, as a party of its own.
func (b *Barrier) awaitAs(ctx context.Context, verb string, r *request) (Arrival, error) {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	p := b.newParty(r)
	err := p.arrive(ctx)
	if err == nil && p.view.how == barrierWaiting {
		err = p.wait(ctx)
	}
	switch err = p.end(ctx, err); {
	case err == nil:
		return p.arrival, nil
	case errors.Is(err, ErrBroken):
		return Arrival{}, fail(verb, b.name, err)
	}
	return Arrival{}, fail(verb, b.name, explain(b.client.wrongKind(ctx, b.keys, b.kind, err))...)
}

// Do waits for all parties, calls fn, and waits for all parties again: no party begins before
// all have arrived, and Do returns when all are done. It takes two generations of the
// barrier, so use one for nothing else, with exactly as many callers as it has parties.
//
// It returns the error of the first Await, without calling fn; or the error of fn joined with
// that of the second Await, which is made whatever fn returns, and also if fn panics. Options
// are for each Await. If ctx has ended when fn returns, the second Await has Options.RetryBudget,
// so that the others do not wait for this party any more.
func (b *Barrier) Do(ctx context.Context, fn func(context.Context) error, options ...BarrierOption) (err error) {
	if _, err = b.Await(ctx, options...); err != nil {
		return err
	}
	defer func() {
		under := ctx
		if ctx.Err() != nil {
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.client.options.RetryBudget)
			defer cancel()
			under = bounded
		}
		_, left := b.Await(under, options...)
		err = errors.Join(err, left)
	}()
	return fn(ctx)
}
