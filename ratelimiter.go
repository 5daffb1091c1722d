package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/primitive/rate"
)

// Rate is how many requests a [RateLimiter] lets through.
type Rate struct {
	N   int           // requests in each period, at least 1
	Per time.Duration // the period, from 1 ms to 366 days
	// Burst is how many requests may go at once after a time without any. In a period there are at
	// most N+Burst. Default: N. With 1, requests are spread evenly.
	Burst int
}

// String returns the rate as text, such as 10/1s, or 10/1s burst 20.
func (r Rate) String() string { return keyspace.Rate(r).String() }

// RateLimiter lets N requests through in each period, for all processes together. Its calls mean
// what those of golang.org/x/time/rate do: they take what is left of the burst, which grows back
// evenly. It keeps time by the server's clock, and takes one round trip. Redisson's RRateLimiter
// has other keys.
//
// A request may be anything that is counted: calls of an API, or bytes. Each call may ask for
// several, at most Burst. Those that wait or reserve have their turns in the order in which the
// server heard of them, large requests too. Only what a Cancel or SetRate frees may go to others
// before those that wait already.
//
// The rate is never exceeded by more than the burst, measured by the server's clock when it decides
// or when a wait ends, while the server keeps its data; a failover may forget the latest requests.
// If a reply is lost, the client repeats the command. The requests may then count twice, so that
// less of the rate is used.
//
// The limiter is one key, which expires a minute after the burst has grown back; Cancel and SetRate
// leave a record for 20 minutes. On the name of another kind of object, every call returns
// ErrWrongKind.
type RateLimiter struct{ inside rate.Limiter }

// NewRateLimiter returns the limiter with that name. It sends nothing. The rate counts for the
// calls of this value, until SetRate sets one for all. If the rate is unusable, every call returns
// ErrInvalid.
func (c *Client) NewRateLimiter(name string, r Rate) *RateLimiter {
	return &RateLimiter{rate.New(c.engine(), name, keyspace.Rate(r))}
}

// Name returns the name as the program gave it.
func (l *RateLimiter) Name() string { return l.inside.Name() }

// Allow reports whether a request may go now, and counts it if so: see [RateLimiter.AllowN].
func (l *RateLimiter) Allow(ctx context.Context) (bool, error) { return l.inside.Allow(ctx, 1) }

// AllowN reports whether n requests may go now, all or none, and counts them if so. Others that
// have reserved go first.
//
// While the server is in trouble, AllowN retries for Options.RetryBudget; give it a context that
// ends earlier if your requests cannot wait. The error matches ErrUnavailable if the server could
// not be reached, and ErrUnknownOutcome as well if the command was sent and got no answer: the
// requests may have been counted. It matches ErrInvalid if n is not from 1 to the Burst of this
// limiter, or above the one that SetRate has set. It can also match ErrClosed or ErrWrongKind, or
// be a *rueidis.RedisError. After these nothing was counted.
func (l *RateLimiter) AllowN(ctx context.Context, n int) (bool, error) { return l.inside.Allow(ctx, n) }

// Wait waits until a request may go: see [RateLimiter.WaitN].
func (l *RateLimiter) Wait(ctx context.Context) error { return l.inside.Wait(ctx, 1) }

// WaitN reserves n requests, all at one time, and waits until they may go. A nil error means that
// they may go now.
//
// If their turn comes after the deadline of ctx, WaitN returns at once, reserves nothing, and the
// error matches ErrNotAcquired, and ErrUnknownOutcome too if an earlier attempt was not answered.
// If ctx ends or the client is closed during the wait, they are given back in the background, as by
// [Reservation.Cancel]; the error matches ErrNotAcquired and that of ctx, or ErrClosed. While the
// server is in trouble, WaitN retries until ctx ends. The other errors are those of AllowN.
func (l *RateLimiter) WaitN(ctx context.Context, n int) error { return l.inside.Wait(ctx, n) }

// Reserve reserves a request: see [RateLimiter.ReserveN].
func (l *RateLimiter) Reserve(ctx context.Context) (*Reservation, error) { return l.ReserveN(ctx, 1) }

// ReserveN reserves n requests, all at one time, and does not wait. They may go when the Delay of
// the reservation is over. If they do not, cancel it. A reservation needs no other end: it does not
// expire, and a process that dies has used it. The errors are those of AllowN, and ErrNotAcquired
// if the turn is more than ten years ahead.
func (l *RateLimiter) ReserveN(ctx context.Context, n int) (*Reservation, error) {
	r, err := l.inside.Reserve(ctx, n)
	return (*Reservation)(r), err
}

// SetRate sets the rate for all processes, at once, instead of those of NewRateLimiter. It counts
// until the next SetRate, or until nobody has used the limiter for 30 days. After SetRate with the
// zero Rate, those of NewRateLimiter count again. Requests that are reserved keep their times, and
// count as many as before.
//
// After ErrUnknownOutcome the client repeats the change in the background. The other errors are
// those of AllowN.
func (l *RateLimiter) SetRate(ctx context.Context, r Rate) error {
	return l.inside.SetRate(ctx, keyspace.Rate(r))
}

// Inspect returns the rate in force, and how many requests may go at once: see [Object]. A limiter
// that nobody has used for a while has the kind [KindNone], and its whole burst may go. The errors
// are those of [Lock.Inspect].
func (l *RateLimiter) Inspect(ctx context.Context) (Object, error) {
	return asObject(l.inside.Inspect(ctx))
}

// Reservation is a number of requests that may go after a delay. All methods may be called from any
// goroutine.
type Reservation rate.Reservation

// Delay returns the time until the requests may go, or 0 if they may go now.
func (r *Reservation) Delay() time.Duration { return (*rate.Reservation)(r).Delay() }

// Cancel gives the requests back, so that others may go instead: all that nobody has reserved
// behind them since. Those that were reserved since keep their times. It does nothing once the
// requests may go, or after an earlier Cancel. It works even if ctx has ended: twice
// Options.RetryBudget bounds it instead. After ErrUnknownOutcome the client repeats it in the
// background.
func (r *Reservation) Cancel(ctx context.Context) error {
	return (*rate.Reservation)(r).Cancel(ctx)
}
