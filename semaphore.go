package latchkey

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Semaphore is a counting semaphore, compatible with Redisson's RSemaphore. Anybody may acquire and
// release its permits, because permits have no owner: those that a crashed process had acquired are
// lost until somebody releases them. Use [PermitSemaphore] where that matters. Any number of
// goroutines may share one Semaphore.
//
// Every operation counts once, however often it is sent. Release, ReleaseIfExists and AddPermits
// return ErrUnknownOutcome if the server could not be reached, or did not answer, in time. The client
// then repeats them in the background until the server answers, for up to 20 minutes, so do not
// repeat them yourself. It does the same with TrySetPermits and SetPermits if they were sent; if
// their error does not match ErrUnknownOutcome, they have changed nothing, and you may repeat them.
// An Acquire, TryAcquire or Drain without an answer is undone in the background. A SetTTL or Delete
// without an answer is abandoned: it has taken effect, or never will.
//
// Set the permits once, with TrySetPermits. Until then acquisitions fail with ErrNotSet, unless
// [AwaitSet] makes them wait. On the name of a [PermitSemaphore] or a [CountDownLatch] every
// operation returns ErrWrongKind.
//
// Each client that waits has one place in a queue on the server, and its goroutines wait in line, first come, first
// served, however many permits they want. Calls with AwaitSet have a line and a place of their own. A release calls as
// many clients, the first of the queue, as there are permits for, and keeps the permits for them for a moment. While
// others wait, nobody overtakes them, TryAcquire included. But a Release passes permits to waiters of its client in
// memory and sends nothing, for one turn ([Options.Turn]), and Redisson has its share. And a request for more permits than are free is overtaken for half of the time: while it is the
// first of the queue, it holds up the others for one Options.StaleWaiterTimeout at first, and for up to a minute at a
// time if it has waited for longer. So a large request is granted when it holds up the others for longer than the
// permits are used, and a request that can never be granted does not block them. A request for more permits than there
// are in all makes way at once, unless the total is unknown: see SetPermits.
type Semaphore struct{ permitCount }

// NewSemaphore returns the semaphore with that name. It sends nothing.
func (c *Client) NewSemaphore(name string) *Semaphore {
	o := newSynchronizer(c.engine, keyspace.KindSemaphore, name, semaphoreChannel)
	return &Semaphore{permitCount{synchronizer: o, secondKey: keyspace.TotalKey(keyspace.Tag(o.names.Key)), numeral: "semaphore", script: semaphoreChange}}
}

// Acquire acquires n permits, all or none. It waits until ctx ends or the time of [Wait] is over.
// The options are Wait and [AwaitSet]. A nil error means that you have the permits; after any other
// error you have none. If ctx has already ended, Acquire sends nothing and returns an error that
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
func (s *Semaphore) Acquire(ctx context.Context, n int, options ...AcquireOption) error {
	return s.acquire(ctx, "acquire", true, n, settingsOf(options))
}

// TryAcquire acquires n permits, all or none, and does not wait. ErrNotAcquired means that there
// are fewer, or that others wait for them. The other errors are
// those of Acquire. An attempt that meets a server in trouble is repeated for Options.RetryBudget.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) error {
	return s.acquire(ctx, "try acquire", false, n, nil)
}

// Release adds n permits and wakes as many waiters as they suffice for. It does not check that they
// were acquired before. If the semaphore does not exist, Release creates it with n permits; see
// [Semaphore.ReleaseIfExists]. The first waiters of this client get the permits in memory, for one turn
// ([Options.Turn]), without a request to the server; what they do not want goes to the server. Release works
// even if ctx has ended: Options.RetryBudget bounds it instead.
//
// The error matches one of
//
//   - ErrUnknownOutcome and ErrUnavailable: the server could not be reached, or did not answer; the
//     client repeats the release in the background, so do not repeat it
//   - ErrClosed, ErrWrongKind: no permit was released
//   - ErrInvalid: the name or n (1 to 2,147,483,647) cannot be used, or there would be more permits
//     than Redisson can count; no permit was released
//   - *rueidis.RedisError: the server refuses
func (s *Semaphore) Release(ctx context.Context, n int) error {
	left := s.passOn(n)
	if left < n {
		s.observeReleased(ctx, n-left)
	}
	if left == 0 && n > 0 {
		return nil
	}
	_, err := s.releasePermits(ctx, "release", "release", left)
	return err
}

// ReleaseIfExists is Release for a semaphore that may have been deleted, or whose TTL may be over:
// it does not create the semaphore again. It reports whether the semaphore existed; false with a
// nil error means that no permit was released. It always sends a request to the server. The errors
// are those of Release.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.releasePermits(ctx, "release if exists", "release if set", n)
}

// Drain acquires all available permits and returns their number. A negative number means that
// permits were missing, and that Drain has canceled this debt. Drain does not wait for permits;
// ctx and Options.RetryBudget bound the call.
//
// ErrUnknownOutcome means that the request was sent and not answered: the client gives back in the
// background what it may have acquired. After any other error nothing was acquired. ErrNotSet means
// that the semaphore does not exist. The other errors are ErrUnavailable, ErrClosed, ErrWrongKind,
// ErrInvalid for a bad name, and a *rueidis.RedisError if the server refuses.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	a, err := s.perform(ctx, s.client.Closing, "drain", func(o *undo.Operation) script.Call {
		return script.NewCall(script.SemDrain, []string{s.names.Key, o.Record, s.kindKey()}, o.Number)
	}, func(o *undo.Operation) script.Call { return s.undo(o, "") }, false)
	if err != nil {
		return 0, err
	}
	return script.Int(a)
}

// release returns the call that releases permits. isShort is '1' if strangers have had more of them than this client.
func (c *permitCount) release(o *undo.Operation, how string, n int, isShort string) script.Call {
	return c.served(script.SemRelease, o, strconv.Itoa(n), line.PresenceChannel(c.names.Key), how, isShort)
}

// semaphoreChange returns the call that changes the number of permits of a Semaphore.
func semaphoreChange(c *permitCount, o *undo.Operation, how permitChange, n int, ttl string) script.Call {
	return c.served(script.SemSet, o, strconv.Itoa(n), ttl, string(how))
}

// undo gives back what an acquisition may have taken, and takes its entry out of the queue.
func (c *permitCount) undo(o *undo.Operation, entry string) script.Call {
	return c.served(script.SemUndo, o, entry, line.PresenceChannel(c.names.Key))
}

// served returns the call of a script that serves the queue of a Semaphore. o is nil for an entry without an operation.
func (c *permitCount) served(cmd transport.Command, o *undo.Operation, what string, more ...string) script.Call {
	record, number := c.names.Key, "" // a key of the same slot, which the user may use
	if o != nil {
		record, number = o.Record, o.Number
	}
	args := []string{number, what, script.MillisText(max(c.client.Config.StaleWaiterTimeout/5, time.Millisecond)), c.client.Publish, c.names.Channel}
	return script.NewCall(cmd, append([]string{c.names.Key, c.secondKey, record, c.kindKey()}, c.names.SemQueueKeys()...),
		append(c.client.Inbox.ChannelArgs(args, c.names.Key), more...)...)
}
