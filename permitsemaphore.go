package latchkey

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// PermitSemaphore is a semaphore whose permits have ids and leases, on the wire
// Redisson's RPermitExpirableSemaphore. A permit is renewed for as long as its process
// lives, unless [Lease] fixes its lease, so that the permits of a process that crashed
// come back by themselves. That makes it the one for worker pools.
//
// The permits have to be set once, by TrySetPermits: until then acquisitions fail with
// ErrNotSet, unless they are told to wait for it ([AwaitSet]). Waiters are served as
// those of a [Semaphore] are. The end of a lease is judged by the server's clock.
//
// What is said there of operations that count once, and of ErrUnknownOutcome, holds
// here for Release by id, TrySetPermits, SetPermits and AddPermits.
type PermitSemaphore struct {
	object

	permits *primitive
}

var permitKind = &kind{kind: KindPermit, family: KindPermit, stored: KindSemaphore,
	protocol: permitProtocol{}, renew: permitRenew, shared: true}

// NewPermitSemaphore returns the semaphore of that name. Nothing is sent.
func (c *Client) NewPermitSemaphore(name string) *PermitSemaphore {
	s := &PermitSemaphore{object: newObject(c, KindSemaphore, name, semaphoreChannel)}
	s.permits = &primitive{keys: s.keys, client: c, kind: permitKind, invalid: s.invalid}
	return s
}

// maxPermits is how many permits one call acquires.
const maxPermits = 1000

// Acquire takes a permit, waiting until ctx ends or the time of [Wait] is over. A nil
// error means that it is held; the errors are those of [Locker], and ErrNotSet. The
// options are Wait, Lease, [MaxHold] and [AwaitSet].
func (s *PermitSemaphore) Acquire(ctx context.Context, options ...PermitOption) (*Permit, error) {
	return one(s.acquire(ctx, "acquire", true, 1, settingsOf(options)))
}

// TryAcquire takes a permit if there is one, and does not wait. ErrNotAcquired means that
// there is none; the other errors are those of Acquire.
func (s *PermitSemaphore) TryAcquire(ctx context.Context, options ...TryPermitOption) (*Permit, error) {
	return one(s.acquire(ctx, "try acquire", false, 1, settingsOf(options)))
}

// AcquireN takes n permits at once or none, as Acquire does; n is 1 000 at most. Each
// is released, renewed and lost for itself.
func (s *PermitSemaphore) AcquireN(ctx context.Context, n int, options ...PermitOption) ([]*Permit, error) {
	return s.acquire(ctx, "acquire", true, n, settingsOf(options))
}

// TryAcquireN is TryAcquire for n permits at once or none.
func (s *PermitSemaphore) TryAcquireN(ctx context.Context, n int, options ...TryPermitOption) ([]*Permit, error) {
	return s.acquire(ctx, "try acquire", false, n, settingsOf(options))
}

func one(permits []*Permit, err error) (*Permit, error) {
	if err != nil {
		return nil, err
	}
	return permits[0], nil
}

func (s *PermitSemaphore) acquire(ctx context.Context, verb string, waits bool, n int, settings []setting) ([]*Permit, error) {
	if n < 1 || n > maxPermits {
		return nil, fail(verb, s.name, invalid("%d is no number of permits to acquire at once", n))
	}
	h, err := s.permits.acquire(ctx, verb, waits, append(settings, setting{kind: settingTogether, n: n}))
	if err != nil {
		return nil, err
	}
	permits := []*Permit{{h}}
	for _, t := range h.tenure.company {
		permits = append(permits, &Permit{newHold(t, &t.first)})
	}
	h.tenure.company = nil
	return permits, nil
}

// TrySetPermits sets how many permits there are in all, of a semaphore that is not
// there, and reports whether it did; one that is there stays as it is. With [TTL] the
// semaphore goes when the time is over, and its permits with it.
func (s *PermitSemaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	ttl, err := timeToLive(options)
	if err == nil {
		err = checkTotal(n)
	}
	if err != nil {
		return false, fail("try set permits", s.name, err)
	}
	return s.set(ctx, "try set permits", "try", n, ttl)
}

// SetPermits changes how many permits there are in all, or sets it. If fewer remain
// than are held, nobody acquires until enough have been released; nobody loses one.
func (s *PermitSemaphore) SetPermits(ctx context.Context, n int) error {
	if err := checkTotal(n); err != nil {
		return fail("set permits", s.name, err)
	}
	_, err := s.set(ctx, "set permits", "set", n, "")
	return err
}

// AddPermits adds n permits, or takes them away if n is negative.
func (s *PermitSemaphore) AddPermits(ctx context.Context, n int) error {
	if n == 0 || n < -maxCount || n > maxCount {
		return fail("add permits", s.name, invalid("%d is no number of permits to add", n))
	}
	_, err := s.set(ctx, "add permits", "add", n, "")
	return err
}

func (s *PermitSemaphore) set(ctx context.Context, verb, how string, n int, ttl string) (bool, error) {
	return yes(s.count(ctx, verb, func(o *op) call {
		return call{permitSet, []string{s.key, s.held(), o.note},
			[]string{o.number, strconv.Itoa(n), how, ttl, s.client.publish, s.channel}}
	}))
}

// Available returns how many permits can be acquired, those included whose lease is
// over; negative if more are held than there are.
func (s *PermitSemaphore) Available(ctx context.Context) (int, error) {
	free, _, err := s.counts(ctx, "available")
	return free, err
}

// Acquired returns how many permits are held.
func (s *PermitSemaphore) Acquired(ctx context.Context) (int, error) {
	_, held, err := s.counts(ctx, "acquired")
	return held, err
}

// Permits returns how many permits there are in all.
func (s *PermitSemaphore) Permits(ctx context.Context) (int, error) {
	free, held, err := s.counts(ctx, "permits")
	return free + held, err
}

func (s *PermitSemaphore) counts(ctx context.Context, verb string) (free, held int, err error) {
	a, err := s.query(ctx, verb, call{permitCount, []string{s.key, s.held()}, nil})
	if err != nil {
		return 0, 0, err
	}
	counts, err := a.message.AsIntSlice()
	if err != nil || len(counts) != 2 {
		return 0, 0, errors.Join(errReply, err)
	}
	return int(counts[0]), int(counts[1]), nil
}

// SetTTL sets the time to live of the semaphore and its permits, or none with NoExpiry, and
// reports whether it is there.
func (s *PermitSemaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	ms, err := ttlText(d)
	if err != nil {
		return false, fail("set ttl", s.name, err)
	}
	return s.setTTL(ctx, ms, s.held())
}

// Delete removes the semaphore and reports whether it was there. Its permits are lost;
// their holders learn of it at the next renewal. Its waiters get ErrNotSet, or wait on
// if they were told to.
func (s *PermitSemaphore) Delete(ctx context.Context) (bool, error) {
	return s.delete(ctx, s.held(), reserveKey(s.key))
}

// held is the key of the ids.
func (o *object) held() string { return idsKey(o.key) }

func idsKey(key string) string     { return hashTag(key) + ":timeout" }
func reserveKey(key string) string { return "latchkey_sc_reserve:" + hashTag(key) }

// permitProtocol is an id among those of a semaphore.
type permitProtocol struct{}

func (permitProtocol) keys(t *tenure) []string {
	keys := append(make([]string, 0, 4), t.lock.key, idsKey(t.lock.key), reserveKey(t.lock.key))
	if t.permanent {
		keys = append(keys, "latchkey_permit_void:"+hashTag(t.lock.key)+":"+t.leader)
	}
	return keys
}

func (p permitProtocol) acquire(t *tenure, lease time.Duration, _, _ int) call {
	keep := ""
	if t.waits && t.client.clock().since(t.since) > t.client.patienceInFront() {
		keep = t.client.staleText()
		t.noted()
	}
	ms := t.client.leaseText(lease)
	if t.permanent = lease == permanentLease; t.permanent {
		ms = ""
	}
	args := []string{ms, keep, t.client.publish, t.lock.channel, t.wire, rawID(t.wire)}
	for _, other := range t.company {
		other.permanent = t.permanent
		args = append(args, rawID(other.wire))
	}
	return call{permitAcquire, p.keys(t), args}
}

func (p permitProtocol) release(t *tenure, count int, _ int64) call {
	if count > 0 {
		return call{}
	}
	mark := ""
	if t.permanent && t.mayWait() {
		mark = strconv.FormatInt(millis(lateDelivery), 10)
	}
	return call{permitLeave, p.keys(t), []string{rawID(t.wire), t.wire, t.client.publish, t.lock.channel, mark}}
}

func (permitProtocol) renewal(t *tenure, lease time.Duration) call {
	ms := strconv.FormatInt(millis(lease), 10)
	return call{permitRenew, []string{idsKey(t.lock.key)}, []string{rawID(t.wire), ms}}
}
