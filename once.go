package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/once"
)

// Forever is the ttl of a [Client.NewOnce] whose success is never forgotten.
const Forever = NoExpiry

// Once is work that succeeds once for its name, in all processes together: a migration at start-up,
// the handling of a message, a request with an idempotency key. It is [sync.Once] for a fleet, with
// a result as in singleflight, and another try after a failure. Redisson has nothing like it.
//
// While the server keeps its data, at most one process at a time runs the work, and nobody runs it
// after it has succeeded, until the success is forgotten. A process that is paused or cut off for
// longer than its lease may not know yet that another one runs. So the work may run twice, and only
// the fencing token tells the runs apart: everything that the work writes must carry it, or be safe
// to repeat.
type Once struct{ inside once.Once }

// NewOnce returns the Once with that name. It sends nothing. A success is remembered for ttl, from
// 1 ms to 10 years, or [Forever]; there is no default, so with 0 every call returns ErrInvalid. If
// processes use different times, that of the process that succeeds counts.
func (c *Client) NewOnce(name string, ttl time.Duration) *Once {
	return &Once{once.New(c.engine(), name, ttl)}
}

// Name returns the name as the program gave it.
func (o *Once) Name() string { return o.inside.Name() }

// Do returns the result of the work, and runs fn to do it if nobody has succeeded yet. While
// another process runs, or another goroutine of this one, Do waits until that run is over. If the
// run has failed or crashed, one of those that wait runs its own fn. The wait ends with ctx or the
// time of [Wait]. The other options are [Lease], [MaxHold] and [Note].
//
// fn runs under a hold, which the client renews unless you set a Lease. The context of fn is that
// of the hold ([Hold.Context]): it ends when ctx ends or the hold is lost. HoldFrom finds the hold
// in it, and with it the fencing token. If fn calls Do of the same name with it, that is an
// ErrInvalid: nobody else could ever finish.
//
// If fn returns nil, the server stores the result, of at most 65,536 bytes, while it ends the hold,
// and every other Do returns it. nil and an empty result are the same. An error or a panic of fn
// ends the hold without a result, and so does a larger result (ErrInvalid).
//
// A nil error means that the work is done, by this call or before. Otherwise Do returns one of
//
//   - the error of fn, joined with that of [Hold.Err] (ErrLost, ErrMaxHold, ErrClosed) if the hold
//     ended while fn ran
//   - ErrLost: fn returned nil, but the hold was lost before its result was stored; another process
//     may run, and its result will count. ErrNotHeld: fn has unlocked the hold itself
//   - ErrUnknownOutcome, and not ErrUnavailable: fn ran, and the server did not confirm the end of
//     the run; the client repeats it in the background
//   - an error of [Lock.Lock]: fn was not called; ErrNotAcquired means that another owner ran until
//     the end of the wait
func (o *Once) Do(
	ctx context.Context, fn func(ctx context.Context) (result []byte, err error), options ...LockOption,
) ([]byte, error) {
	return o.inside.Do(ctx, fn, settingsOf(options))
}

// HoldFrom returns the hold of the run that ctx carries, or nil: see [Lock.HoldFrom]. The token of
// a hold ([Hold.Token]) is larger than that of every earlier run. It is the time in µs at which the
// run began, by the clock of the server, so nothing has to outlive the success.
func (o *Once) HoldFrom(ctx context.Context) *Hold { return (*Hold)(o.inside.HandleFrom(ctx)) }

// Result returns the result of the success, and reports whether the work is done. It does not wait.
// The errors are those of [Lock.Inspect].
func (o *Once) Result(ctx context.Context) (result []byte, done bool, err error) {
	return o.inside.Result(ctx)
}

// Forget forgets the success that it finds, so that the next Do runs again. It does not end a run,
// and never forgets a later success. The errors are those of [Lock.Inspect], and ErrUnknownOutcome
// if the request was sent and got no answer; you may repeat it.
func (o *Once) Forget(ctx context.Context) error { return o.inside.Forget(ctx) }

// Inspect returns who runs, how long the success is remembered, and the token of the run. The
// errors are those of [Lock.Inspect].
func (o *Once) Inspect(ctx context.Context) (Object, error) { return asObject(o.inside.Inspect(ctx)) }
