package latchkey

import (
	"context"
	"errors"
	"strconv"
	"time"
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
// for. Among clients there is no order. A request that has been first in its client for a
// fifth of Options.StaleWaiterTimeout may have permits reserved for it, one request at a
// time: others, of this library, can take only unreserved permits, so that a large
// request is not starved by small ones. That lasts for one StaleWaiterTimeout at first,
// then, after a pause that is as long, for twice as long, up to a minute at a time. So a
// large request is granted when one such time outlasts the uses of the permits, and one
// that can never be granted takes no more than half of the time from others. A waiter
// that died has permits reserved for one StaleWaiterTimeout at most. Nothing is reserved
// while it is not known how many permits there are in all: see SetPermits.
type Semaphore struct {
	object

	total, reserve string // keys
}

// NewSemaphore returns the semaphore of that name. Nothing is sent.
func (c *Client) NewSemaphore(name string) *Semaphore {
	o := newObject(c, KindSemaphore, name, semaphoreChannel)
	tag := hashTag(o.key)
	return &Semaphore{object: o, total: totalKey(tag), reserve: "latchkey_sc_reserve:" + tag}
}

func semaphoreChannel(key string) string { return "redisson_sc:" + hashTag(key) }

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
//   - *rueidis.RedisError: the server refuses for a reason that waiting cannot mend
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
// permits; see [Semaphore.ReleaseIfExists]. It works although ctx has ended: the time
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
	_, err := s.releasePermits(s.client.sender.detached(ctx), "release", "release", n)
	return err
}

// ReleaseIfExists is Release for a semaphore that may have been deleted, or have come to
// the end of its TTL: it is not made anew. It reports whether it was there; false, with a
// nil error, means that no permit was given. The errors are those of Release.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.releasePermits(s.client.sender.detached(ctx), "release if exists", "release if set", n)
}

// AddPermits adds n permits to those that there are, and wakes waiters, or takes them away if
// n is negative: the number available may then be negative until enough are released. A
// semaphore that is not there is made, with n permits.
//
// The errors are those of [Semaphore.Release]; n is from -2,147,483,647 to 2,147,483,647 and
// not 0. ctx bounds the call.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	if err := checkAdded(n); err != nil {
		return fail("add permits", s.name, err)
	}
	_, err := s.send(ctx, "add permits", "add", n)
	return err
}

// TrySetPermits sets the permits of a semaphore that is not there, wakes those who wait for
// that, and reports whether it did; one that is there stays as it is. With [TTL] the
// semaphore ends when the time is over. n is 0 or more.
//
// The errors are those of [Semaphore.Release]. ctx bounds the call.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.set(ctx, "try set permits", "", n, options)
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
	_, err := s.set(ctx, "set permits", "1", n, nil)
	return err
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
	if s.invalid != nil {
		return 0, fail("drain", s.name, s.invalid)
	}
	if !s.client.begin() {
		return 0, fail("drain", s.name, ErrClosed)
	}
	defer s.client.working.Done()
	o := s.client.newOperation(s.key)
	o.followUp = s.undo(o)
	a, err := s.client.sender.call(ctx, s.client.closing, semDrain, []string{s.key, o.record}, []string{o.number})
	if a.doubt && err != nil {
		o.repeatLater()
	} else {
		o.done()
	}
	if err != nil {
		return 0, fail("drain", s.name, s.explain(ctx, a, err)...)
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
	ms, err := ttlText(d)
	if err != nil {
		return false, fail("set ttl", s.name, err)
	}
	return s.setTTL(ctx, ms, s.total)
}

// Delete removes the semaphore and reports whether it was there. Its waiters get
// ErrNotSet, or wait on if they were told to. The errors are those of [Semaphore.SetTTL].
func (s *Semaphore) Delete(ctx context.Context) (bool, error) {
	return s.delete(ctx, s.total, s.reserve)
}

// setTTL is SetTTL of both kinds of semaphore.
func (o *object) setTTL(ctx context.Context, ms string, beside ...string) (bool, error) {
	return yes(o.once(ctx, "set ttl", func(each *operation) call {
		return call{semExpire, append([]string{o.key, each.record}, beside...), []string{each.number, ms}}
	}))
}

// delete is Delete of both kinds of semaphore.
func (o *object) delete(ctx context.Context, beside ...string) (bool, error) {
	return yes(o.once(ctx, "delete", func(each *operation) call {
		return call{semDelete, append([]string{o.key, each.record}, beside...),
			[]string{each.number, o.client.publish, o.channel}}
	}))
}

// releasePermits is send for what is counted from one on.
func (s *Semaphore) releasePermits(ctx context.Context, verb, how string, n int) (bool, error) {
	if err := checkCount(n); err != nil {
		return false, fail(verb, s.name, err)
	}
	return s.send(ctx, verb, how, n)
}

func (s *Semaphore) send(ctx context.Context, verb, how string, n int) (bool, error) {
	return yes(s.count(ctx, verb, func(o *operation) call {
		return call{semRelease, []string{s.key, s.total, o.record},
			[]string{o.number, strconv.Itoa(n), how, s.client.publish, s.channel}}
	}))
}

func (s *Semaphore) set(ctx context.Context, verb, change string, n int, options []SetOption) (bool, error) {
	ttl, err := timeToLive(options)
	if err == nil {
		err = checkTotal(n)
	}
	if err != nil {
		return false, fail(verb, s.name, err)
	}
	return yes(s.count(ctx, verb, func(o *operation) call {
		return call{semSet, []string{s.key, s.total, o.record},
			[]string{o.number, strconv.Itoa(n), ttl, change, s.client.publish, s.channel}}
	}))
}

func checkCount(n int) error {
	if n < 1 || n > maxCount {
		return invalid("%d permits, want at least 1 and at most %d", n, maxCount)
	}
	return nil
}

func checkTotal(n int) error {
	if n < 0 || n > maxCount {
		return invalid("%d permits, want at least 0 and at most %d", n, maxCount)
	}
	return nil
}

func checkAdded(n int) error {
	if n == 0 || n < -maxCount || n > maxCount {
		return invalid("%d permits to add, want a number other than 0 from %d to %d", n, -maxCount, maxCount)
	}
	return nil
}

// acquire is Acquire and TryAcquire.
func (s *Semaphore) acquire(ctx context.Context, verb string, waits bool, n int, settings []setting) error {
	r, err := newRequest(s.client.options.Lease, waits, settings)
	if err = errors.Join(s.invalid, err, checkCount(n)); err != nil {
		return fail(verb, s.name, err)
	}
	if !s.client.begin() {
		return fail(verb, s.name, ErrClosed)
	}
	defer s.client.working.Done()
	ctx, cancel := r.bound(ctx)
	defer cancel()
	w := &wanted{Semaphore: s, request: &r, n: strconv.Itoa(n), since: s.client.clock()}
	if err := w.conclude(w.run(ctx)); err != nil {
		return fail(verb, s.name, explain(s.client.wrongKind(ctx, s.keys, s.kind, err))...)
	}
	return nil
}

func (s *Semaphore) undo(o *operation) call {
	return call{semUndo, []string{s.key, s.reserve, o.record},
		[]string{s.client.id, o.number, s.client.publish, s.channel}}
}

// wanted is one acquisition of permits.
type wanted struct {
	*Semaphore

	request *request
	op      *operation // nil before it has asked
	n       string
	since   stamp // when it came to the front
	doubt   bool  // it may have been executed, or may yet be
	kept    bool  // permits may be kept for it
}

// run asks once, or stands in line and asks until there are enough.
func (w *wanted) run(ctx context.Context) error {
	if !w.request.waits {
		_, err := w.attempt(ctx, 0)
		return err
	}
	g := w.client.waitQueues.use(w.key)
	defer g.done()
	if err := g.awaitFront(ctx, w.client.closing); err != nil {
		return g.waitError(ctx, err, nil)
	}
	defer g.leaveFront()
	w.since = w.client.clock()
	return w.client.waitInFront(ctx, g, w)
}

// attempt is part of [attempter].
func (w *wanted) attempt(ctx context.Context, _ int) (time.Duration, error) {
	if w.op == nil {
		w.op = w.client.newOperation(w.key)
	}
	keep := ""
	if w.request.waits && w.client.clock().since(w.since) > w.client.patienceInFront() {
		keep, w.kept = w.client.staleText(), true
	}
	c := call{semAcquire, []string{w.key, w.reserve, w.op.record, w.total},
		[]string{w.client.id, w.op.number, w.n, keep, w.client.publish, w.channel}}
	a, err := w.client.sender.callOn(ctx, w.client.closing, terms{w.client.sender.patience, w.request.waits}, c.cmd, c.keys, c.args)
	if err == nil && w.client.acks != nil && granted(a) {
		a, err = w.client.confirm(ctx, a, c)
	}
	w.doubt = w.doubt || a.doubt
	if err != nil {
		return -1, w.request.waitForSet(err)
	}
	if a.message.IsInt64() {
		ms, err := a.message.AsInt64()
		return fromMillis(ms), errors.Join(ErrNotAcquired, err)
	}
	select {
	case <-w.client.closing:
		w.doubt = true // to be given back
		return 0, ErrClosed
	default:
		return 0, nil
	}
}

// pause is part of [attempter].
func (w *wanted) pause(g *waitQueue, _ int, left time.Duration) time.Duration {
	g.subscribe(w.client.notifier, w.channel)
	pause := min(w.client.pollPause(), max(w.client.patienceInFront(), time.Millisecond))
	return until(left, pause)
}

func (w *wanted) what() string { return w.name }

// conclude ends the operation, and has it undone if it has failed and left anything.
func (w *wanted) conclude(err error) error {
	granted := errors.Is(err, ErrNotReplicated)
	switch {
	case w.op == nil:
		return err
	case err == nil, !w.doubt && !w.kept && !granted:
		w.op.done()
		return err
	}
	w.op.followUp = w.undo(w.op)
	if granted && w.client.undo.atOnce(w.op.undo) {
		return err
	}
	w.op.repeatLater()
	if w.doubt || granted {
		return errors.Join(err, ErrUnknownOutcome)
	}
	return err
}
