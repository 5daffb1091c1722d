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
type Barrier struct{ inside barrier.Barrier }

// NewBarrier returns the barrier with that name and number of parties, from 1 to 2147483647. It
// sends nothing. All parties must give the same number. If braces enclose the whole name, as in
// {x}, every call returns ErrInvalid, because the barrier would share keys with x.
func (c *Client) NewBarrier(name string, parties int) *Barrier {
	return &Barrier{barrier.New(c.engine(), name, parties)}
}

// Name returns the name as the program gave it.
func (b *Barrier) Name() string { return b.inside.Name() }

// Client returns the client that made the object.
func (b *Barrier) Client() *Client { return (*Client)(b.inside.Client.Handle) }

// Parties returns how many parties make a generation complete.
func (b *Barrier) Parties() int { return b.inside.Parties }

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
	a, err := b.inside.Await(ctx, settingsOf(options))
	return Arrival(a), err
}

// Do waits for all parties, calls fn, and waits for all parties again: no party begins before all
// have arrived, and Do returns when all are done. It takes two generations of the barrier. All
// parties must call Do. A caller that comes while the functions run waits for the next round.
//
// The parties of the second generation are those of the first. While fn runs, the client renews the
// lease of the party. A party that crashes, or whose client is closed, breaks the generation: the
// others get ErrBroken. The context of fn then ends, and [context.Cause] matches ErrBroken, or
// ErrClosed in the client that was closed. It ends also if the client cannot renew the lease: the
// party is then no longer in the generation. It may end up to Tuning.PollCeiling late.
//
// If the parties do not meet, Do returns the error, as Await does, and does not call fn. Otherwise
// Do returns the error of fn joined with the outcome of the second generation. The party arrives
// there whatever fn returns and even if fn panics. The options apply to each wait, and not to the
// time of fn. If ctx has ended when fn returns, the second wait gets Options.RetryBudget, so that
// the others do not keep waiting for this party.
//
// The second generation costs one script for the arrival and one query when it ends, as an Await
// does. A function that runs for longer than Tuning.PollCeiling costs what a waiting party costs.
func (b *Barrier) Do(ctx context.Context, fn func(context.Context) error, options ...BarrierOption) (err error) {
	return b.inside.Do(ctx, fn, settingsOf(options))
}

// Inspect returns how many parties wait, and how many the barrier still waits for, as [Client.Inspect] does.
// [Barrier.State] lists them. A barrier that nobody has used for ten minutes has the kind [KindNone].
//
// The errors are those of Client.Inspect, and ErrWrongKind if the key is something else, which the Object then shows.
func (b *Barrier) Inspect(ctx context.Context) (Object, error) {
	return asObject(b.inside.Inspect(ctx))
}

// BarrierState describes a barrier at one moment.
type BarrierState struct {
	// Generation is the last generation that has begun, or 0 if none is known. The server forgets a
	// barrier that nobody has used for ten minutes.
	Generation int64
	// Parties is how many parties make a generation complete. It is 0 if that is undecided because
	// nobody has awaited the barrier or it was reset.
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

// State returns the parties of the generation. It changes nothing. The answer may be out of date when it
// arrives. State does not use the number of parties of this Barrier.
//
// While the server is in trouble, State retries for Options.RetryBudget. The error matches
// ErrUnavailable if the server could not be reached, ErrClosed, ErrWrongKind, ErrInvalid, or is a
// *rueidis.RedisError if the server refuses.
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

// Reset breaks the generation if one is in progress: its parties get ErrBroken. The barrier also forgets
// how many parties it has, so that the next one to arrive decides. Reset does not wait.
//
// While the server is in trouble, Reset retries for Options.RetryBudget. The error matches
// ErrUnavailable if the server could not be reached, and ErrUnknownOutcome as well if the request
// was sent and got no answer. The reset may then have broken that generation, or may still do so,
// but it breaks no later one, and you may repeat it. The error can also match ErrClosed,
// ErrWrongKind or ErrInvalid, or be a *rueidis.RedisError if the server refuses.
func (b *Barrier) Reset(ctx context.Context) error { return b.inside.Reset(ctx) }
