package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// Semaphore is a counting semaphore; on the wire it is Redisson's RSemaphore. Anybody may acquire and release
// its permits, because permits have no owner: those that a crashed process had acquired are lost until
// somebody releases them. Use [PermitSemaphore] where that matters. Any number of goroutines may share one
// Semaphore.
//
// Set the permits once, with TrySetPermits or SetPermits. Until then acquisitions fail with ErrNotSet,
// unless [AwaitSet] makes them wait. On the name of a [PermitSemaphore] or a [CountDownLatch] every operation
// returns ErrWrongKind.
//
// Every operation counts once, however often it is sent. ErrUnknownOutcome means that the server could not
// be reached, or did not answer, in time. The client then repeats the change in the background, for up to
// 20 minutes, so do not repeat it yourself. An acquisition or a Drain without an answer is undone, and a
// SetTTL or Delete has taken effect, or never will. After any other error nothing was changed.
//
// Each client that waits has one place in a queue on the server, and its goroutines wait in line. Nobody
// overtakes them, TryAcquire included, except that a release passes permits to waiters of its client in
// memory for one turn ([Tuning].Turn), that Redisson has its share, and that a request for more permits than
// are free is overtaken for half of the time: it holds up the others for one Tuning.StaleWaiterTimeout at
// first, and for up to a minute at a time later. A request for more permits than there are in all makes way
// at once.
type Semaphore struct {
	baseSemaphore

	inside semaphore.Semaphore
}

// NewSemaphore returns the semaphore with that name. It sends nothing.
func (c *Client) NewSemaphore(name string) *Semaphore {
	s := &Semaphore{inside: semaphore.New(c.engine(), name)}
	s.count = &s.inside.Count
	return s
}

// Acquire acquires one permit: see [Semaphore.AcquireN].
func (s *Semaphore) Acquire(ctx context.Context, options ...AcquireOption) error {
	return s.AcquireN(ctx, 1, options...)
}

// AcquireN acquires n permits, all or none. It waits until ctx ends or the time of [Wait] is over.
// The options are Wait and [AwaitSet]. A nil error means that you have the permits; after any other
// error you have none. If ctx has already ended, AcquireN sends nothing and returns an error that
// matches only that of ctx.
//
// The error matches one of
//
//   - ErrNotAcquired: there were fewer than n until ctx ended (the error then also matches that of
//     ctx) or the time of Wait was over; with AwaitSet also: nobody had set them until then
//   - ErrNotSet: the semaphore does not exist
//   - ErrUnavailable: the server could not be reached until then
//   - ErrUnknownOutcome, besides ErrNotAcquired or ErrUnavailable: a request was sent and not
//     answered, perhaps an earlier one; the client gives back in the background what it may have
//     acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the acquisition;
//     it was undone
//   - ErrClosed: the client is closed
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name, n (1 to 2,147,483,647) or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change
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

// ReleaseN adds n permits and wakes as many waiters as they suffice for. It does not check that they
// were acquired before. If the semaphore does not exist, ReleaseN creates it with n permits; see
// [Semaphore.ReleaseIfExists]. The first waiters of this client get the permits in memory, for one turn
// ([Tuning.Turn]), without a request to the server; what they do not want goes to the server. ReleaseN
// works even if ctx has ended: Options.RetryBudget bounds it instead.
//
// The error matches one of
//
//   - ErrUnknownOutcome and ErrUnavailable: the server could not be reached, or did not answer; the
//     client repeats the release in the background, so do not repeat it
//   - ErrClosed, ErrWrongKind: no permit was released
//   - ErrInvalid: the name or n (1 to 2,147,483,647) cannot be used, or there would be more permits
//     than Redisson can count; no permit was released
//   - *rueidis.RedisError: the server refuses
func (s *Semaphore) ReleaseN(ctx context.Context, n int) error { return s.inside.Release(ctx, n) }

// ReleaseIfExists is ReleaseN for a semaphore that may have been deleted, or whose TTL may be over:
// it does not create the semaphore again. It reports whether the semaphore existed; false with a
// nil error means that no permit was released. It always sends a request to the server. The errors
// are those of Release.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.inside.ReleaseIfExists(ctx, n)
}

// Drain acquires all available permits and returns their number. A negative number means that
// permits were missing, and that Drain has canceled this debt. Drain does not wait for permits;
// ctx and Options.RetryBudget bound the call.
//
// ErrUnknownOutcome means that the request was sent and not answered: the client gives back in the
// background what it may have acquired. After any other error nothing was acquired. ErrNotSet means
// that the semaphore does not exist. The other errors are ErrUnavailable, ErrClosed, ErrWrongKind,
// ErrInvalid for a bad name, and a *rueidis.RedisError if the server refuses.
func (s *Semaphore) Drain(ctx context.Context) (int, error) { return s.inside.Drain(ctx) }

// baseSemaphore is what semaphores of all kinds have in common.
type baseSemaphore struct{ count *semaphore.Count }

// Name returns the name as the program gave it.
func (s *baseSemaphore) Name() string { return s.count.Name() }

// Client returns the client that made the object.
func (s *baseSemaphore) Client() *Client { return (*Client)(s.count.Client.Handle) }

// Inspect returns how many permits there are and how many are acquired, as [Client.Inspect] does, all read at the
// same moment in one round trip. A semaphore that is not set has the kind [KindNone], which is not an error. To act
// only if there are permits, acquire them. If Redisson made a [Semaphore], its Total is unknown, and 0.
//
// The errors are those of Client.Inspect, and ErrWrongKind if the key is something else, which the Object then shows.
func (s *baseSemaphore) Inspect(ctx context.Context) (Object, error) {
	return asObject(s.count.Inspect(ctx))
}

// TrySetPermits sets the total number of permits of a semaphore that does not exist yet, wakes callers that
// wait for that, and reports whether it did. An existing semaphore does not change. With [TTL] the semaphore
// ends when the time is over, with the permits that have ids, whose holders know that. n is 0 or more.
//
// ErrUnknownOutcome means that the request was sent and not answered: the client repeats it in the
// background, so do not repeat it. After ErrUnavailable without ErrUnknownOutcome, and after
// ErrClosed, ErrWrongKind, ErrInvalid for a bad name or n, or a *rueidis.RedisError, nothing was
// changed, and you may repeat the call. ctx bounds it.
func (s *baseSemaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.count.TrySet(ctx, n, settingsOf(options))
}

// SetPermits changes the total number of permits, acquired ones included. Setting the same number twice
// changes nothing. If the semaphore does not exist, SetPermits creates it. With a smaller total, nobody loses
// a permit, and the number available may be negative until enough are released. n is 0 or more.
//
// The total of a [Semaphore] counts what this library has set and added. It is unknown for one that
// Redisson made: SetPermits then returns ErrNotSet and changes nothing. It is wrong for one that
// Redisson has changed: use AddPermits. If permits have ids, the total is always known.
//
// The other errors are those of TrySetPermits. ctx bounds the call.
func (s *baseSemaphore) SetPermits(ctx context.Context, n int) error { return s.count.Set(ctx, n) }

// AddPermits adds n permits and wakes waiters. If n is negative it removes permits: the number
// available may then be negative until enough are released. The total cannot become negative: that is
// ErrInvalid, and nothing is removed. If the semaphore does not exist, AddPermits creates it with n
// permits, if n is positive. The total of a [Semaphore] that Redisson made is unknown: its number may
// become negative, as in Redisson.
//
// The errors are those of [Semaphore.ReleaseN]. n is from -2,147,483,647 to 2,147,483,647 and not 0.
// ctx bounds the call; if ctx has ended before it, nothing is added.
func (s *baseSemaphore) AddPermits(ctx context.Context, n int) error { return s.count.Add(ctx, n) }

// SetTTL makes the semaphore end in d, or never with NoExpiry, and reports whether it exists. d is
// from 1 ms to 10 years. When the time is over the semaphore is deleted, and its waiters get
// ErrNotSet, or wait on with [AwaitSet]. ctx bounds the call.
//
// Permits with ids end with the semaphore; until then their leases stay as they are. Their holders learn of
// that at their next renewal, a third of the lease later at most, and those of permits that are not renewed do
// not: let d be longer.
//
// ErrUnknownOutcome means that the request was sent and not answered: it has taken effect, or never
// will, and you may repeat it. After any other error nothing was changed: ErrUnavailable,
// ErrClosed, ErrWrongKind, ErrInvalid for a bad name or d, or a *rueidis.RedisError if the server
// refuses.
func (s *baseSemaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	return s.count.SetTTL(ctx, d)
}

// Delete removes the semaphore and reports whether it existed. Its waiters get ErrNotSet, or wait on with
// [AwaitSet]. Permits with ids are lost; their holders learn of it at the next renewal. The errors are those of
// SetTTL.
func (s *baseSemaphore) Delete(ctx context.Context) (bool, error) { return s.count.Delete(ctx) }
