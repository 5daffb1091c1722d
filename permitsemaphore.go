package latchkey

import (
	"context"
	"strconv"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
)

// PermitSemaphore is a semaphore whose permits have ids and leases; on the wire it is Redisson's
// RPermitExpirableSemaphore. A permit is renewed for as long as its process lives, unless [Lease] fixes its
// lease, so the permits of a process that crashed become available again. That makes it suitable for worker
// pools. Any number of goroutines may share one PermitSemaphore.
//
// The number of permits must be set once, with TrySetPermits: until then acquisitions fail with ErrNotSet,
// unless [AwaitSet] makes them wait. The server's clock decides when a lease ends.
//
// Each client has one place in a queue on the server, and its goroutines wait for that place in line, first
// come, first served. So clients take turns, whatever their number of goroutines. Nobody overtakes: while a
// large request is first, smaller ones wait, however long that takes. A request for more permits than there
// are in all does not block others while some are free. A [FairSemaphore] of the same name shares the queue.
// Redisson does not know it; while its processes wait, each has its turn as often as a client.
//
// On the name of a [Semaphore] or a [CountDownLatch] every operation returns ErrWrongKind.
//
// Release by id, TrySetPermits, SetPermits and AddPermits count once, and return ErrUnknownOutcome, as
// described for [Semaphore].
type PermitSemaphore struct{ permitPool }

// NewPermitSemaphore returns the semaphore with that name. It sends nothing.
func (c *Client) NewPermitSemaphore(name string) *PermitSemaphore {
	return &PermitSemaphore{newPermitPool(c.engine, name, c.engine.permitQueues().inLine)}
}

// permitPool is a semaphore whose permits have ids and leases. The kinds differ in how callers wait.
type permitPool struct {
	permitCount

	permits *acquirable
}

func newPermitPool(c *engine, name string, permits *acquireSpec) permitPool {
	o := newSynchronizer(c, keyspace.KindSemaphore, name, semaphoreChannel)
	count := permitCount{synchronizer: o, secondKey: keyspace.PermitIDsKey(o.names.Key), numeral: "permit semaphore", script: permitsChange}
	return permitPool{count, acquirableOf(c, permits, o.names)}
}

// maxPermits is how many permits one call may acquire.
const maxPermits = 1000

// Acquire acquires a permit. It waits until ctx ends or the time of [Wait] is over. The options are Wait,
// [Lease], [MaxHold], [AwaitSet] and [Note].
//
// A nil error means that you hold the permit, until you release it or it is lost ([Permit.Context]); with any
// other error you do not. If ctx has already ended, Acquire sends nothing and returns an error that matches
// only that of ctx.
// Canceling ctx after Acquire returns does not affect the permit.
//
// The error matches one of
//
//   - ErrNotAcquired: no permit was available until ctx ended (the error then also matches that of
//     ctx) or the time of Wait was over; with AwaitSet also: nobody had set the permits until then
//   - ErrNotSet: the semaphore is not there
//   - ErrUnavailable: the server could not be reached until then
//   - ErrUnknownOutcome, besides ErrNotAcquired or ErrUnavailable: a request was sent and not
//     answered, perhaps an earlier one; any permit that it may have acquired is undone in the
//     background
//   - ErrNotReplicated: too few replicas confirmed the acquisition, and it was undone
//   - ErrClosed: the client is closed
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option is unusable; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting cannot remove
func (s *permitPool) Acquire(ctx context.Context, options ...PermitOption) (*Permit, error) {
	return onePermit(s.acquire(ctx, "acquire", true, 1, settingsOf(options)))
}

// TryAcquire acquires a permit if one is available and nobody waits, and does not wait itself. ErrNotAcquired
// means that none is available, or that somebody waits; the other errors are those of Acquire.
// If the server is in trouble, the attempt is repeated for Options.RetryBudget.
func (s *permitPool) TryAcquire(ctx context.Context, options ...TryPermitOption) (*Permit, error) {
	return onePermit(s.acquire(ctx, "try acquire", false, 1, settingsOf(options)))
}

// AcquireN acquires n permits at once or none, as Acquire does, with its errors; n is at most 1,000. Each
// permit is released, renewed and lost on its own.
func (s *permitPool) AcquireN(ctx context.Context, n int, options ...PermitOption) ([]*Permit, error) {
	return s.acquire(ctx, "acquire", true, n, settingsOf(options))
}

// TryAcquireN is TryAcquire for n permits at once or none; n is at most 1,000.
func (s *permitPool) TryAcquireN(ctx context.Context, n int, options ...TryPermitOption) ([]*Permit, error) {
	return s.acquire(ctx, "try acquire", false, n, settingsOf(options))
}

// Do acquires a permit as Acquire does, calls fn with a context of the permit ([Permit.Context], [PermitFrom]),
// and releases the permit, even if fn panics.
//
// If the acquisition fails, Do returns its error without calling fn. Otherwise it returns the error of fn
// joined with the loss of the permit, if it was lost while fn ran, and with the error of [Permit.Release].
//
// ErrNotAcquired and ErrUnavailable from Do mean that fn was not called. If fn ran and the release was not
// confirmed, the error matches ErrUnknownOutcome and not ErrUnavailable: do not repeat the work.
func (s *permitPool) Do(ctx context.Context, fn func(context.Context) error, options ...PermitOption) error {
	p, err := s.Acquire(ctx, options...)
	if err != nil {
		return err
	}
	return p.hold.During(ctx, fn)
}

func onePermit(permits []*Permit, err error) (*Permit, error) {
	if err != nil {
		return nil, err
	}
	return permits[0], nil
}

func (s *permitPool) acquire(ctx context.Context, verb string, waits bool, n int, settings []request.Setting) ([]*Permit, error) {
	if n < 1 || n > maxPermits {
		return nil, fault.Op(verb, s.names.Name, fault.Invalid("%d permits at once, want at least 1 and at most %d", n, maxPermits))
	}
	a := s.permits.newAcquisition(verb, waits, append(settings, request.Setting{Kind: request.Together, N: n}))
	h, err := a.run(ctx)
	if err != nil {
		return nil, err
	}
	permits := []*Permit{{h}}
	for _, o := range a.others {
		permits = append(permits, &Permit{hold.New(o.first())})
	}
	return permits, nil
}

// permitsChange returns the call that changes the number of permits of a semaphore whose permits have ids.
func permitsChange(c *permitCount, o *undo.Operation, how permitChange, n int, ttl string) script.Call {
	args := c.client.Inbox.ChannelArgs([]string{o.Number, strconv.Itoa(n), string(how), ttl, c.client.Publish, c.names.Channel}, c.names.Key)
	return script.NewCall(script.PermitSet, c.queueKeys(o), append(args, line.PresenceChannel(c.names.Key))...)
}

// queueKeys returns the keys of scripts that serve the queue.
func (c *permitCount) queueKeys(o *undo.Operation) []string {
	queue := c.names.FairPermitKeys()[2:5]
	return append([]string{c.names.Key, c.secondKey, o.Record, c.kindKey()}, queue...)
}
