package latchkey

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// PermitSemaphore is a semaphore whose permits have ids and leases, on the wire
// Redisson's RPermitExpirableSemaphore. A permit is renewed for as long as its process
// lives, unless [Lease] fixes its lease, so that the permits of a process that crashed
// come back by themselves. That makes it the one for worker pools. Any number of goroutines
// may share one PermitSemaphore.
//
// The permits have to be set once, by TrySetPermits: until then acquisitions fail with
// ErrNotSet, unless they are told to wait for it ([AwaitSet]). Waiters are served as
// those of a [Semaphore] are. The end of a lease is judged by the server's clock.
//
// What is said there of operations that count once, and of ErrUnknownOutcome, holds
// here for Release by id, TrySetPermits, SetPermits and AddPermits.
type PermitSemaphore struct {
	permitCount

	permits *primitive
}

var permitSpec = &spec{kind: KindPermit, family: KindPermit, stored: KindSemaphore,
	protocol: permitProtocol{}, renew: permitRenew, renewals: renewBatch, shared: true,
	line:    exclusiveLine, // whose front does not wait for a hold of this client to end
	resolve: noOwner, fresh: freshPermits, ceiling: (*Client).patienceInFront}

// NewPermitSemaphore returns the semaphore of that name. Nothing is sent.
func (c *Client) NewPermitSemaphore(name string) *PermitSemaphore {
	s := &PermitSemaphore{}
	s.init(c, name, permitSpec)
	return s
}

func (s *PermitSemaphore) init(c *Client, name string, permits *spec) {
	o := newObject(c, KindSemaphore, name, semaphoreChannel)
	s.permitCount = permitCount{object: o, beside: idsKey(o.key), script: permitsChange}
	s.permits = &primitive{}
	s.permits.initOf(c, permits, s.keys)
}

// maxPermits is how many permits one call acquires.
const maxPermits = 1000

// Acquire takes a permit. It waits until ctx ends or the time of [Wait] is over. The options
// are Wait, [Lease], [MaxHold] and [AwaitSet].
//
// A nil error means that the permit is held, until you release it or it is lost
// ([Permit.Context]); with any other error it is not. A context that has already ended gets
// an error even if there is a permit. Cancelling ctx after Acquire returns does not affect
// the permit.
//
// The error matches one of
//
//   - ErrNotAcquired: there was none until ctx ended (the error then also matches that of
//     ctx) or the time of Wait was over; with AwaitSet also: nobody had set them until then
//   - ErrNotSet: the semaphore is not there
//   - ErrUnavailable: the server could not be asked until then. If a request was sent and not
//     answered, the error also matches ErrUnknownOutcome, and what may have been acquired
//     is undone in the background
//   - ErrNotReplicated: too few replicas have confirmed it, and it was undone
//   - ErrClosed: the client is closed
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option is unusable; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting cannot remove
func (s *PermitSemaphore) Acquire(ctx context.Context, options ...PermitOption) (*Permit, error) {
	return onePermit(s.acquire(ctx, "acquire", true, 1, settingsOf(options)))
}

// TryAcquire takes a permit if there is one, and does not wait. ErrNotAcquired means that
// there is none, or that it is reserved for a request that has been waiting; the other errors
// are those of Acquire. An attempt that meets a server in trouble is repeated for
// Options.RetryBudget.
func (s *PermitSemaphore) TryAcquire(ctx context.Context, options ...TryPermitOption) (*Permit, error) {
	return onePermit(s.acquire(ctx, "try acquire", false, 1, settingsOf(options)))
}

// AcquireN takes n permits at once or none, as Acquire does, with its errors; n is 1,000 at
// most. Each is released, renewed and lost on its own.
func (s *PermitSemaphore) AcquireN(ctx context.Context, n int, options ...PermitOption) ([]*Permit, error) {
	return s.acquire(ctx, "acquire", true, n, settingsOf(options))
}

// TryAcquireN is TryAcquire for n permits at once or none; n is 1,000 at most.
func (s *PermitSemaphore) TryAcquireN(ctx context.Context, n int, options ...TryPermitOption) ([]*Permit, error) {
	return s.acquire(ctx, "try acquire", false, n, settingsOf(options))
}

// Do acquires a permit as Acquire does, calls fn with a context of the permit
// ([Permit.Context], [PermitFrom]), and releases the permit, also when fn panics.
//
// It returns the error of the acquisition, without calling fn; or the error of fn joined
// with the loss of the permit, if it was lost while fn ran, and with the error of
// [Permit.Release].
//
// ErrNotAcquired and ErrUnavailable of this call mean that fn was not called. If fn ran and
// its release was not confirmed, the error matches ErrUnknownOutcome and not ErrUnavailable:
// do not repeat the work.
func (s *PermitSemaphore) Do(ctx context.Context, fn func(context.Context) error, options ...PermitOption) error {
	p, err := s.Acquire(ctx, options...)
	if err != nil {
		return err
	}
	return p.hold.during(ctx, fn)
}

func onePermit(permits []*Permit, err error) (*Permit, error) {
	if err != nil {
		return nil, err
	}
	return permits[0], nil
}

func (s *PermitSemaphore) acquire(ctx context.Context, verb string, waits bool, n int, settings []setting) ([]*Permit, error) {
	if n < 1 || n > maxPermits {
		return nil, fail(verb, s.name, invalid("%d permits at once, want at least 1 and at most %d", n, maxPermits))
	}
	a := s.permits.newAcquisition(verb, waits, append(settings, setting{kind: settingTogether, n: n}))
	h, err := a.run(ctx)
	if err != nil {
		return nil, err
	}
	permits := []*Permit{{h}}
	for _, o := range a.others {
		permits = append(permits, &Permit{newHold(&o.holds.first)})
	}
	return permits, nil
}

// TrySetPermits sets how many permits there are in all, of a semaphore that is not
// there, wakes those who wait for that, and reports whether it did; one that is there stays
// as it is. With [TTL] the semaphore ends when the time is over, and its permits with it. n is
// 0 or more.
//
// The errors are those of [Semaphore.Release]: after ErrUnknownOutcome do not repeat it, after
// any other nothing has changed. ctx bounds the call.
func (s *PermitSemaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.trySet(ctx, n, options)
}

// SetPermits changes the total number of permits, or sets it. To set the same number
// twice changes nothing. If fewer remain than are held, nobody acquires until enough have
// been released; nobody loses one. The errors are those of TrySetPermits.
func (s *PermitSemaphore) SetPermits(ctx context.Context, n int) error {
	return s.set(ctx, n)
}

// AddPermits adds n permits, and wakes waiters, or takes them away if n is negative, as
// SetPermits does. A semaphore that is not there is made, with n permits. n is from
// -2,147,483,647 to 2,147,483,647 and not 0. The errors are those of TrySetPermits.
func (s *PermitSemaphore) AddPermits(ctx context.Context, n int) error {
	return s.add(ctx, n)
}

// permitsChange is the script that changes how many permits a PermitSemaphore has.
func permitsChange(c *permitCount, o *operation, how permitChange, n int, ttl string) call {
	return call{permitSet, []string{c.key, c.beside, o.record},
		[]string{o.number, strconv.Itoa(n), string(how), ttl, c.client.publish, c.channel}}
}

// SetTTL makes the semaphore and its permits end in d, or never with NoExpiry, and reports
// whether it is there. The leases of permits that are held stay as they are, but end with the
// semaphore. The errors are those of [Semaphore.SetTTL].
func (s *PermitSemaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	return s.setTTL(ctx, d)
}

// Delete removes the semaphore and reports whether it was there. Its permits are lost;
// their holders learn of it at the next renewal. Its waiters get ErrNotSet, or wait on
// if they were told to. The errors are those of [Semaphore.SetTTL].
func (s *PermitSemaphore) Delete(ctx context.Context) (bool, error) {
	return s.delete(ctx)
}

// permitProtocol is an id among those of a semaphore.
type permitProtocol struct {
	leader    string // the id of the first of those that were asked for together
	permanent bool   // they were asked for without an end of their leases
}

func (p permitProtocol) keys(o *ownership) []string {
	keys := append(make([]string, 0, 4), o.lock.key, idsKey(o.lock.key), reserveKey(o.lock.key))
	if p.permanent {
		keys = append(keys, permitVoidKey(o.lock.key, p.leader))
	}
	return keys
}

func (p permitProtocol) acquireCall(a *acquisition, _, _ int) call {
	o, keep := a.ownership, ""
	if a.inLine && o.lock.client.clock().Since(a.since) > o.lock.client.patienceInFront() {
		keep = o.lock.client.staleMS
		o.markQueued()
	}
	args := []string{p.leaseText(a), keep, o.lock.client.publish, o.lock.keys().channel, o.wire}
	for each := range a.each {
		args = append(args, rawID(each.wire))
	}
	return call{permitAcquire, p.keys(o), args}
}

// leaseText is the lease as scripts are told, "" without an end.
func (p permitProtocol) leaseText(a *acquisition) string {
	if p.permanent {
		return ""
	}
	return a.lock.client.leaseText(a.lease)
}

// readRefusal does not tell what is left of a lease, which would be that of one of many.
func (permitProtocol) readRefusal(_ *acquisition, ans transport.Answer) (time.Duration, error) {
	ms, err := ans.Message.AsInt64()
	if err != nil {
		return 0, errors.Join(errReply, err)
	}
	return fromMillis(ms), ErrNotAcquired
}

func (p permitProtocol) releaseCall(o *ownership, count int, _ int64, args []string) call {
	if count > 0 {
		return call{}
	}
	mark := ""
	if p.permanent && o.mayWait() {
		mark = strconv.FormatInt(millis(lateDelivery), 10)
	}
	return call{permitLeave, p.keys(o), append(args, rawID(o.wire), o.wire, o.lock.client.publish, o.lock.keys().channel, mark)}
}

func (permitProtocol) renewalCall(o *ownership, lease time.Duration) call {
	ms := strconv.FormatInt(millis(lease), 10)
	return call{permitRenew, []string{idsKey(o.lock.key)}, []string{rawID(o.wire), ms}}
}
