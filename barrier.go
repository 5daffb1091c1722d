package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/barrier"
)

// Barrier lets a fixed number of parties wait for each other, again and again, like Java's
// CyclicBarrier. The parties are goroutines in any number of processes. Redisson has nothing like
// it.
//
// A barrier is used in generations. The first Await begins one. When all parties wait, the
// generation is complete: they go on, and the next Await begins the next one. A generation breaks
// if a party crashes, gives up or is closed with its client, if somebody calls Reset, or if the
// server loses it. All parties that wait in it then get ErrBroken, and it is over too: you need not
// repair the barrier.
//
// While a party waits, or runs the function of its [Barrier.Do], its client renews a lease of
// Options.Lease for it; a party whose process dies breaks its generation when that lease ends. The
// barrier does not know of a party that dies before it arrives: the others wait until their
// contexts end or the time of [Wait] is over.
type Barrier struct{ inside barrier.Barrier }

// NewBarrier returns the barrier with that name and number of parties, from 1 to 2147483647. It
// sends nothing. All parties must give the same number. If braces enclose the whole name, as in
// {x}, every call returns ErrInvalid, because the barrier would share keys with x.
func (c *Client) NewBarrier(name string, parties int) *Barrier {
	return &Barrier{barrier.New(c.engine(), name, parties)}
}

// Name returns the name as the program gave it.
func (b *Barrier) Name() string { return b.inside.Name() }

// Parties returns how many parties make a generation complete.
func (b *Barrier) Parties() int { return b.inside.Parties }

// Arrival is a place in a generation that has become complete.
type Arrival struct {
	// Generation is the same for all parties of a generation. It grows from one generation to the
	// next, but not by one.
	Generation int64
	// Index is how many parties had arrived before: 0 for the first. No two parties of a generation
	// have the same Index.
	Index int

	last bool
}

// Last reports whether this party was the last to arrive. Exactly one party of each generation is
// the last; it may do work for all of them. The others do not wait for that work: if they must, let
// all parties await the barrier once more.
func (a Arrival) Last() bool { return a.last }

// Await arrives at the barrier and waits until all parties of the generation have arrived, ctx
// ends, or the time of [Wait] is over. Without either limit it waits forever. An arrival counts
// once, however often it is sent.
//
// A nil error means that the generation is complete. After any other error this party is no longer
// in the generation. The error matches one of
//
//   - ErrBroken: something other than this call broke the generation
//   - ErrNotAcquired: not all parties had arrived when ctx ended or the time of Wait was over. This
//     call has broken the generation, unless the parties of a [Barrier.Do] run their functions:
//     then the call waits for them to be done
//   - ErrUnavailable: the server could not be reached or did not answer in time. If it is unknown
//     whether the others go on or get ErrBroken, the error also matches ErrUnknownOutcome; the
//     party leaves in the background, or when its lease ends
//   - ErrClosed: the client is closed, or was closed during the call, which broke the generation
//   - ErrInvalid: the name, the number of parties or an option is unusable, or the barrier has
//     another number of parties, or the other parties call Do. Nothing was changed
//   - ErrWrongKind, *rueidis.RedisError: as for [Lock.Lock]
//
// If ctx ends, the error matches that of ctx as for Lock. If the generation is already complete by
// then, Await succeeds. To find out, it queries the server once more, for up to
// Options.RetryBudget.
func (b *Barrier) Await(ctx context.Context, options ...WaitOption) (Arrival, error) {
	a, err := b.inside.Await(ctx, settingsOf(options))
	return Arrival{a.Generation, a.Index, err == nil && a.Index == a.Parties-1}, err
}

// Do waits for all parties, calls fn, and waits for all parties again: no party begins before all
// have arrived, and Do returns when all are done. It takes two generations of the barrier. All
// parties must call Do. A caller that comes while the functions run waits for the next round.
//
// If a party crashes meanwhile, if its client is closed, or if its lease cannot be renewed, the
// others get ErrBroken. The context of fn then ends, at most Tuning.PollCeiling late, and
// [context.Cause] matches ErrBroken, or ErrClosed in the client that was closed.
//
// If the parties do not meet, Do returns the error, as Await does, and does not call fn. Otherwise
// Do returns the error of fn joined with the outcome of the second generation, at which the party
// arrives whatever fn returns and even if fn panics. The options apply to each wait, and not to the
// time of fn. If ctx has ended when fn returns, the second wait gets Options.RetryBudget.
func (b *Barrier) Do(ctx context.Context, fn func(context.Context) error, options ...WaitOption) error {
	return b.inside.Do(ctx, fn, settingsOf(options))
}

// Inspect returns how many parties wait, and how many the barrier still waits for. A barrier that
// nobody has used for ten minutes has the kind [KindNone]. The errors are those of [Lock.Inspect].
func (b *Barrier) Inspect(ctx context.Context) (Object, error) {
	return asObject(b.inside.Inspect(ctx))
}

// BarrierState describes a barrier at one moment.
type BarrierState struct {
	// Generation is the last generation that has begun, or 0 if none is known.
	Generation int64
	// Parties is how many parties make a generation complete, or 0 if nobody has awaited the
	// barrier or it was reset.
	Parties int
	// Waiting is how many parties have arrived in the generation, or 0 if it is over.
	Waiting int
	// The parties of the generation, at most 1000, in the order in which their leases end.
	Who []BarrierParty
}

// BarrierParty is a party that waits at a barrier, or that runs the function of its Do.
type BarrierParty struct {
	Owner   Owner         // identifies one Await or Do; includes the id of its client
	Label   string        // the label of its client, or "": see [Holder]
	Lease   time.Duration // until its lease ends; 0 if it has ended, which the others will find out
	Running bool          // the party runs the function of its Do, and does not wait
}

// State returns the parties of the generation, whatever the number of parties of this Barrier. The
// answer may be out of date when it arrives. The errors are those of [Lock.Inspect].
func (b *Barrier) State(ctx context.Context) (BarrierState, error) {
	s, err := b.inside.State(ctx)
	return barrierStateOf(s), err
}

// barrierStateOf returns a state as programs see it.
func barrierStateOf(s barrier.GenerationState) BarrierState {
	state := BarrierState{Generation: s.Generation, Parties: s.Parties, Waiting: s.Waiting}
	for _, p := range s.Who {
		state.Who = append(state.Who, BarrierParty{Owner: Owner(p.Owner), Label: p.Label, Lease: p.Lease, Running: p.Running})
	}
	return state
}

// Reset breaks the generation if one is in progress: its parties get ErrBroken. The next party to
// arrive decides how many there are. The errors are those of [Lock.Inspect], and ErrUnknownOutcome
// if the request was sent and got no answer. The reset breaks no later generation, and you may
// repeat it.
func (b *Barrier) Reset(ctx context.Context) error { return b.inside.Reset(ctx) }
