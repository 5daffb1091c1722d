package latchkey

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Semaphore is a counting semaphore, on the wire Redisson's RSemaphore: a number of
// permits that anybody may take and give. Permits have no owner: one that a crashed
// process had is gone until somebody gives it back. Use [PermitSemaphore] where that
// matters. Any number of goroutines may share one Semaphore.
//
// Every operation counts once, however often it has to be sent. Release, ReleaseIfExists,
// AddPermits, TrySetPermits and SetPermits return ErrUnknownOutcome when no answer came in
// time; they are then repeated in the background until the server answers, so do not
// repeat them. Acquire, TryAcquire and Drain without an answer are undone there, SetTTL and
// Delete are given up there: each either took effect or never will.
//
// The permits have to be set once, by TrySetPermits: until then acquisitions fail with
// ErrNotSet, unless they are told to wait for it ([AwaitSet]).
//
// Waiters of one client are served first come first served, whatever number they ask
// for; only while the first of them asks the server, others that ask for no more may get permits
// before it. A Release passes permits to them in memory, and sends nothing, for a turn
// ([Options.Turn]) at a time. Clients take turns, in no
// strict order. A request that has been first in its client for a
// fifth of Options.StaleWaiterTimeout may have permits reserved for it, one request at a
// time: others, of this library, can take only unreserved permits, so that a large
// request is not starved by small ones. That lasts for one StaleWaiterTimeout at first,
// then, after a pause that is as long, for twice as long, up to a minute at a time. So a
// large request is granted when one such time outlasts the uses of the permits, and one
// that can never be granted takes no more than half of the time from others. A waiter
// that died has permits reserved for one StaleWaiterTimeout at most. Nothing is reserved
// while it is not known how many permits there are in all: see SetPermits.
type Semaphore struct{ permitCount }

// NewSemaphore returns the semaphore of that name. Nothing is sent.
func (c *Client) NewSemaphore(name string) *Semaphore {
	o := newObject(c, KindSemaphore, name, semaphoreChannel)
	return &Semaphore{permitCount{object: o, beside: totalKey(transport.HashTag(o.key)), script: semaphoreChange}}
}

// Acquire takes n permits, all or none. It waits until ctx ends or the time of [Wait] is
// over. The options are Wait and [AwaitSet]. A nil error means that the permits are taken;
// with any other error none is. A context that has already ended gets an error even if there
// are permits.
//
// The error matches one of
//
//   - ErrNotAcquired: there were fewer than n until ctx ended (the error then also matches
//     that of ctx) or the time of Wait was over; with AwaitSet also: nobody had set them
//     until then
//   - ErrNotSet: the semaphore is not there
//   - ErrUnavailable: the server could not be asked until then. If a request was sent and not
//     answered, the error also matches ErrUnknownOutcome, and what may have been taken is
//     given back in the background
//   - ErrNotReplicated: too few replicas have confirmed it, and it was undone
//   - ErrClosed: the client is closed
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name, n (1 to 2,147,483,647) or an option is unusable; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting cannot remove
func (s *Semaphore) Acquire(ctx context.Context, n int, options ...AcquireOption) error {
	return s.acquire(ctx, "acquire", true, n, settingsOf(options))
}

// TryAcquire takes n permits if there are as many, all or none, and does not wait.
// ErrNotAcquired means that there are fewer, or that they are reserved for a request that
// has been waiting; the other errors are those of Acquire. An attempt that meets a server in
// trouble is repeated for Options.RetryBudget.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) error {
	return s.acquire(ctx, "try acquire", false, n, nil)
}

// Release gives n permits, and wakes as many waiters as they are enough for. Nobody
// checks that they were taken before. A semaphore that is not there is made, with n
// permits; see [Semaphore.ReleaseIfExists]. If those who are first in line in this client want
// just as many, they get these, for a turn ([Options.Turn]) without the server being asked. It works even if ctx has ended: the time
// is bounded by Options.RetryBudget instead.
//
// The error matches one of
//
//   - ErrUnknownOutcome: it was sent and not answered; it is repeated in the background, so
//     do not repeat it
//   - ErrUnavailable, without ErrUnknownOutcome: the server could not be asked; no permit was
//     given, and you may repeat it
//   - ErrClosed, ErrWrongKind: no permit was given
//   - ErrInvalid: the name or n (1 to 2,147,483,647) is unusable, or there would be more
//     permits than Redisson can count; no permit was given
//   - *rueidis.RedisError: the server refuses
func (s *Semaphore) Release(ctx context.Context, n int) error {
	if s.passOn(n) {
		s.observeReleased(ctx, n)
		return nil
	}
	_, err := s.releasePermits(ctx, "release", "release", n)
	return err
}

// ReleaseIfExists is Release for a semaphore that may have been deleted, or have come to
// the end of its TTL: it is not made anew. It reports whether it was there; false, with a
// nil error, means that no permit was given. The server is asked each time. The errors are
// those of Release.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.releasePermits(ctx, "release if exists", "release if set", n)
}

// AddPermits adds n permits to those that there are, and wakes waiters, or takes them away if
// n is negative: the number available may then be negative until enough are released. A
// semaphore that is not there is made, with n permits.
//
// The errors are those of [Semaphore.Release]; n is from -2,147,483,647 to 2,147,483,647 and
// not 0. ctx bounds the call.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	return s.add(ctx, n)
}

// TrySetPermits sets the permits of a semaphore that is not there, wakes those who wait for
// that, and reports whether it did; one that is there stays as it is. With [TTL] the
// semaphore ends when the time is over. n is 0 or more.
//
// The errors are those of [Semaphore.Release]. ctx bounds the call.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.trySet(ctx, n, options)
}

// SetPermits changes how many permits there are in all, those included that are taken:
// to set the same number twice changes nothing. It sets them if nobody has. The number
// available may then be negative until enough are released. n is 0 or more.
//
// The total is what was set, and added, by this library; of a semaphore that Redisson made
// it is not known (ErrNotSet, and nothing is changed), and of one that Redisson has changed
// it is wrong: use AddPermits. The other errors are those of [Semaphore.Release]. ctx bounds
// the call.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error {
	return s.set(ctx, n)
}

// Drain takes all permits that are available, and returns how many. A negative number means
// that so many were missing, and none is now. It does not wait for permits; ctx and
// Options.RetryBudget bound the call.
//
// With any error but ErrUnknownOutcome nothing was taken; after that one, what may have been
// taken is given back in the background. ErrNotSet means that the semaphore is not there. The
// other errors are ErrUnavailable, ErrClosed, ErrWrongKind, ErrInvalid for a bad name, and a
// *rueidis.RedisError with which the server refuses.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	a, err := s.perform(ctx, s.client.closing, "drain", func(o *operation) call {
		return call{semDrain, []string{s.key, o.record}, []string{o.number}}
	}, s.undo)
	if err != nil {
		return 0, err
	}
	return intOf(a)
}

// SetTTL makes the semaphore end in d, or never with NoExpiry, and reports whether it is there.
// d is from MinLease to MaxLease. When the time is over the semaphore is gone, and its waiters
// get ErrNotSet, or wait on if they were told to. ctx bounds the call.
//
// ErrUnknownOutcome means that it was sent and not answered: it took effect, or never will,
// and you may repeat it. With any other error nothing was changed: ErrUnavailable, ErrClosed,
// ErrWrongKind, ErrInvalid for a bad name or d, or a *rueidis.RedisError with which the server
// refuses.
func (s *Semaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	return s.setTTL(ctx, d)
}

// Delete removes the semaphore and reports whether it was there. Its waiters get
// ErrNotSet, or wait on if they were told to. The errors are those of [Semaphore.SetTTL].
func (s *Semaphore) Delete(ctx context.Context) (bool, error) {
	return s.delete(ctx)
}

// release gives permits, or adds them to the total as well.
func (c *permitCount) release(o *operation, how string, n int) call {
	return call{semRelease, []string{c.key, c.beside, o.record},
		[]string{o.number, strconv.Itoa(n), how, c.client.publish, c.channel, presenceChannel(c.key)}}
}

// semaphoreChange is the script that changes how many permits a Semaphore has.
func semaphoreChange(c *permitCount, o *operation, how permitChange, n int, ttl string) call {
	change := ""
	switch how {
	case changeAdd:
		return c.release(o, "add", n)
	case changeSet:
		change = "1"
	}
	return call{semSet, []string{c.key, c.beside, o.record},
		[]string{o.number, strconv.Itoa(n), ttl, change, c.client.publish, c.channel}}
}
