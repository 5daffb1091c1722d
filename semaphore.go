package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// Semaphore is a counting semaphore; on the wire it is Redisson's RSemaphore. Anybody may acquire
// and release its permits, because permits have no owner: those that a crashed process had acquired
// are lost until somebody releases them. Use [PermitSemaphore] where that matters. Any number of
// goroutines may share one Semaphore.
//
// Set the permits once, with TrySetPermits or SetPermits. Until then acquisitions fail with
// ErrNotSet, unless [AwaitSet] makes them wait. On the name of a PermitSemaphore or a
// [CountDownLatch] every operation returns ErrWrongKind.
//
// Every operation counts once, however often it is sent. After ErrUnknownOutcome the client repeats
// the change in the background, for up to 20 minutes, so do not repeat it yourself; an acquisition
// or a Drain is undone, and a SetTTL or Delete has taken effect, or never will. After any other
// error nothing was changed.
//
// Each client that waits has one place in a queue on the server, and its goroutines wait in line.
// Nobody overtakes them, TryAcquire included, except that a release passes permits to waiters of
// its client in memory for one turn ([Tuning].Turn), that Redisson has its share, and that a
// request for more permits than are free holds up the others for half of the time, and for a minute
// at a time at most. A request for more permits than there are in all makes way at once.
type Semaphore struct{ inside semaphore.Semaphore }

// NewSemaphore returns the semaphore with that name. It sends nothing.
func (c *Client) NewSemaphore(name string) *Semaphore {
	return &Semaphore{semaphore.New(c.engine(), name)}
}

// Name returns the name as the program gave it.
func (s *Semaphore) Name() string { return s.inside.Name() }

// Acquire acquires one permit: see [Semaphore.AcquireN].
func (s *Semaphore) Acquire(ctx context.Context, options ...AcquireOption) error {
	return s.AcquireN(ctx, 1, options...)
}

// AcquireN acquires n permits, from 1 to 2,147,483,647, all or none. It waits until ctx ends or the
// time of [Wait] is over. The options are Wait and [AwaitSet]. A nil error means that you have the
// permits; after any other error you have none.
//
// The errors are those of [Lock.Lock] with these meanings:
//
//   - ErrNotAcquired: there were fewer than n until the end of the wait; with AwaitSet also: nobody
//     had set them
//   - ErrNotSet: the semaphore does not exist
//   - ErrUnavailable, ErrUnknownOutcome: as there; the client gives back in the background what it
//     may have acquired
//   - ErrNotReplicated, ErrClosed, ErrWrongKind, ErrInvalid, *rueidis.RedisError: as there
func (s *Semaphore) AcquireN(ctx context.Context, n int, options ...AcquireOption) error {
	return s.inside.Acquire(ctx, "acquire", true, n, settingsOf(options))
}

// TryAcquire acquires one permit and does not wait: see [Semaphore.TryAcquireN].
func (s *Semaphore) TryAcquire(ctx context.Context) error { return s.TryAcquireN(ctx, 1) }

// TryAcquireN acquires n permits, all or none, and does not wait. ErrNotAcquired means that there
// are fewer, or that others wait for them. The other errors are those of AcquireN. An attempt that
// meets a server in trouble is repeated for Options.RetryBudget.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) error {
	return s.inside.Acquire(ctx, "try acquire", false, n, nil)
}

// Release adds one permit: see [Semaphore.ReleaseN].
func (s *Semaphore) Release(ctx context.Context) error { return s.ReleaseN(ctx, 1) }

// ReleaseN adds n permits and wakes as many waiters as they suffice for, those of this client in
// memory for one turn ([Tuning.Turn]). It does not check that they were acquired before. If the
// semaphore does not exist, ReleaseN creates it with n permits; see [Semaphore.ReleaseIfExists]. It
// works even if ctx has ended: Options.RetryBudget bounds it instead.
//
// The error matches ErrUnknownOutcome and ErrUnavailable if the server could not be reached, or did
// not answer; the client repeats the release in the background. After ErrClosed, ErrWrongKind, a
// *rueidis.RedisError, or ErrInvalid (the name or n, from 1 to 2,147,483,647, cannot be used, or
// there would be more permits than Redisson can count) no permit was released.
func (s *Semaphore) ReleaseN(ctx context.Context, n int) error { return s.inside.Release(ctx, n) }

// ReleaseIfExists is ReleaseN for a semaphore that may have been deleted, or whose TTL may be over:
// it does not create the semaphore again. It reports whether the semaphore existed; false with a
// nil error means that no permit was released. It always sends a request to the server.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.inside.ReleaseIfExists(ctx, n)
}

// Drain acquires all available permits and returns their number. A negative number means that
// permits were missing, and that Drain has canceled this debt. Drain does not wait; ctx and
// Options.RetryBudget bound the call. The errors are those of AcquireN.
func (s *Semaphore) Drain(ctx context.Context) (int, error) { return s.inside.Drain(ctx) }

// Inspect returns how many permits there are and how many are acquired, all read at the same
// moment. A semaphore that is not set has the kind [KindNone], which is not an error. To act only
// if there are permits, acquire them. If Redisson made the Semaphore, its Total is unknown, and 0.
// The errors are those of [Lock.Inspect].
func (s *Semaphore) Inspect(ctx context.Context) (Object, error) {
	return asObject(s.inside.Inspect(ctx))
}

// TrySetPermits sets the total number of permits, 0 or more, of a semaphore that does not exist
// yet, wakes callers that wait for that, and reports whether it did. An existing semaphore does not
// change. With [TTL] the semaphore ends when the time is over. ctx bounds the call.
//
// After ErrUnknownOutcome the client repeats the request in the background. After any other error
// nothing was changed: ErrUnavailable, ErrClosed, ErrWrongKind, ErrInvalid for a bad name or n, or
// a *rueidis.RedisError if the server refuses.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.inside.TrySet(ctx, n, settingsOf(options))
}

// SetPermits changes the total number of permits, acquired ones included, to n, 0 or more. Setting
// the same number twice changes nothing. If the semaphore does not exist, SetPermits creates it.
// With a smaller total, nobody loses a permit, and the number available may be negative until
// enough are released. ctx bounds the call.
//
// The total counts what this library has set and added. It is unknown if Redisson made the
// semaphore: SetPermits then returns ErrNotSet and changes nothing. It is wrong if Redisson has
// changed it: use AddPermits. The other errors are those of TrySetPermits.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error { return s.inside.Set(ctx, n) }

// AddPermits adds n permits, from -2,147,483,647 to 2,147,483,647 and not 0, and wakes waiters. A
// negative n removes permits: the number available may then be negative until enough are released.
// The total cannot become negative: that is ErrInvalid, unless Redisson made the semaphore, so that
// it is unknown. If the semaphore does not exist, AddPermits creates it with n permits, if n is
// positive. The errors are those of ReleaseN. ctx bounds the call; if ctx has ended before it,
// nothing is added.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error { return s.inside.Add(ctx, n) }

// SetTTL makes the semaphore end in d, from 1 ms to 10 years, or never with NoExpiry, and reports
// whether it exists. When the time is over the semaphore is deleted, and its waiters get ErrNotSet,
// or wait on with [AwaitSet]. ctx bounds the call. After ErrUnknownOutcome it has taken effect, or
// never will, and you may repeat it. The other errors are those of TrySetPermits.
func (s *Semaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	return s.inside.SetTTL(ctx, d)
}

// Delete removes the semaphore and reports whether it existed. Its waiters get ErrNotSet, or wait
// on with [AwaitSet]. The errors are those of SetTTL.
func (s *Semaphore) Delete(ctx context.Context) (bool, error) { return s.inside.Delete(ctx) }
