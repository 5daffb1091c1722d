package tests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// object is one object under a name: how to make it, and all its operations.
type object struct {
	sort string // the kind that errors report; objects of one sort share a name
	make func(t *testing.T, client *latchkey.Client, name string)
	use  func(ctx context.Context, client *latchkey.Client, name string) map[string]error
}

const anID = "000102030405060708090a0b0c0d0e0f"

var objects = map[string]object{
	"mutex":      lockObject("a mutex", func(c *latchkey.Client, n string) anyLock { return c.NewMutex(n) }),
	"lock":       lockObject("a lock", func(c *latchkey.Client, n string) anyLock { return c.NewLock(n) }),
	"fair lock":  lockObject("a lock", func(c *latchkey.Client, n string) anyLock { return c.NewFairLock(n, latchkey.Fenced()) }),
	"spin lock":  lockObject("a lock", func(c *latchkey.Client, n string) anyLock { return c.NewSpinLock(n, latchkey.Backoff{}) }),
	"read lock":  lockObject("a read/write lock", func(c *latchkey.Client, n string) anyLock { return c.NewRWLock(n).Reader() }),
	"write lock": lockObject("a read/write lock", func(c *latchkey.Client, n string) anyLock { return c.NewRWLock(n).Writer() }),

	"semaphore":                {"a semaphore", makeSemaphore(), useSemaphore},
	"semaphore with a TTL":     {"a semaphore", makeSemaphore(latchkey.TTL(time.Hour)), useSemaphore},
	"semaphore by a release":   {"a semaphore", makeSemaphoreBy(func(s *latchkey.Semaphore) error { return s.ReleaseN(context.Background(), 2) }), nil},
	"semaphore by an addition": {"a semaphore", makeSemaphoreBy(func(s *latchkey.Semaphore) error { return s.AddPermits(context.Background(), 2) }), nil},
	"permits":                  {"a permit semaphore", makePermits(true), usePermits},
	"permits with a TTL":       {"a permit semaphore", makePermits(true, latchkey.TTL(time.Hour)), usePermits},
	"permits that are free":    {"a permit semaphore", makePermits(false), nil},
	"fair permits":             {"a permit semaphore", makeFairPermits, useFairPermits},
	"latch":                    {"a latch", makeLatch(), useLatch},
	"latch with a TTL":         {"a latch", makeLatch(latchkey.TTL(time.Hour)), useLatch},
	"open latch":               {"a latch", makeOpenLatch(), nil},
	"open latch with a TTL":    {"a latch", makeOpenLatch(latchkey.TTL(time.Hour)), nil},
	"election":                 {"a lock", makeElection, useElection},
	"barrier":                  {"a barrier", makeBarrier, useBarrier},
	"Once that is done":        {"a Once", makeDone, useOnce},
	"Once that runs":           {"a Once", makeRunning, useOnce},
	"rate limiter":             {"a rate limiter", makeRateLimiter, useRateLimiter},
	"record of application":    {"a hash without any lock owner", putRecord, nil},
}

func putRecord(t *testing.T, _ *latchkey.Client, name string) {
	t.Helper()
	put(rig.NewAdmin(t, rig.Shared()), name, "HSET|@|name|Ann", "PEXPIRE|@|3600000")
}

func lockObject(sort string, open func(*latchkey.Client, string) anyLock) object {
	return object{
		sort: sort,
		make: func(t *testing.T, client *latchkey.Client, name string) {
			t.Helper()
			mustLock(t, open(client, name), latchkey.Lease(time.Hour))
		},
		use: func(ctx context.Context, client *latchkey.Client, name string) map[string]error {
			lock := open(client, name)
			return map[string]error{
				"Lock": firstOf(lock.Lock(ctx)), "TryLock": firstOf(lock.TryLock(ctx)),
				"Do":      lock.Do(ctx, func(context.Context) error { return nil }),
				"Inspect": firstOf(lock.Inspect(ctx)), "ForceUnlock": firstOf(lock.ForceUnlock(ctx)),
			}
		},
	}
}

func makeSemaphore(options ...latchkey.SetOption) func(*testing.T, *latchkey.Client, string) {
	return func(t *testing.T, client *latchkey.Client, name string) {
		t.Helper()
		require.NoError(t, firstOf(client.NewSemaphore(name).TrySetPermits(t.Context(), 5, options...)))
	}
}

func useSemaphore(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	s := client.NewSemaphore(name)
	return map[string]error{
		"Acquire": s.Acquire(ctx), "TryAcquire": s.TryAcquireN(ctx, 100), "Release": s.Release(ctx),
		"ReleaseIfExists": firstOf(s.ReleaseIfExists(ctx, 1)), "AddPermits": s.AddPermits(ctx, 1),
		"TrySetPermits": firstOf(s.TrySetPermits(ctx, 1)), "SetPermits": s.SetPermits(ctx, 3),
		"Drain": firstOf(s.Drain(ctx)), "Inspect": firstOf(statsOf(ctx, s)),
		"Expire": firstOf(s.SetTTL(ctx, time.Millisecond)), "SetTTL never": firstOf(s.SetTTL(ctx, latchkey.NoExpiry)),
		"Delete": firstOf(s.Delete(ctx)),
	}
}

func makeSemaphoreBy(first func(*latchkey.Semaphore) error) func(*testing.T, *latchkey.Client, string) {
	return func(t *testing.T, client *latchkey.Client, name string) {
		t.Helper()
		require.NoError(t, first(client.NewSemaphore(name)))
	}
}

func makePermits(held bool, options ...latchkey.SetOption) func(*testing.T, *latchkey.Client, string) {
	return func(t *testing.T, client *latchkey.Client, name string) {
		t.Helper()
		s := client.NewPermitSemaphore(name)
		require.NoError(t, firstOf(s.TrySetPermits(t.Context(), 5, options...)))
		if held {
			require.NoError(t, firstOf(s.Acquire(t.Context(), latchkey.Lease(time.Hour))))
		}
	}
}

func makeFairPermits(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	require.NoError(t, client.NewFairSemaphore(name).SetPermits(t.Context(), 5))
}

func useFairPermits(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	s := client.NewFairSemaphore(name)
	return map[string]error{
		"Acquire": firstOf(s.Acquire(ctx)), "AcquireN": firstOf(s.AcquireN(ctx, 2)), "TryAcquire": firstOf(s.TryAcquireN(ctx, 100)),
		"AcquireUnset":  firstOf(s.Acquire(ctx, latchkey.AwaitSet())),
		"TrySetPermits": firstOf(s.TrySetPermits(ctx, 1)), "SetPermits": s.SetPermits(ctx, 3), "AddPermits": s.AddPermits(ctx, 1),
		"Inspect": firstOf(statsOf(ctx, s)), "Holders": firstOf(s.Holders(ctx)),
		"Release": firstOf(s.Release(ctx, anID)), "RemainingLease": firstOf(s.RemainingLease(ctx, anID)), "SetLease": s.SetLease(ctx, anID, time.Hour),
		"SetTTL": firstOf(s.SetTTL(ctx, time.Millisecond)), "Delete": firstOf(s.Delete(ctx)),
	}
}

func makeElection(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	require.NoError(t, firstOf(client.NewElection(name).Campaign(t.Context(), "me", latchkey.Lease(time.Hour))))
}

func useElection(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	e := client.NewElection(name)
	return map[string]error{"Campaign": firstOf(e.Campaign(ctx, "me")), "TryCampaign": firstOf(e.TryCampaign(ctx, "me"))}
}

func makeBarrier(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	b, ctx := client.NewBarrier(name, 2), t.Context()
	go func() { _, _ = b.Await(ctx) }()
	rig.Eventually(t, soon, "a party waits", func() error {
		if s, err := b.State(ctx); err != nil || s.Waiting == 0 {
			return fmt.Errorf("%+v, %w", s, err)
		}
		return nil
	})
}

func useBarrier(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	b := client.NewBarrier(name, 1)
	return map[string]error{
		"Await": firstOf(b.Await(ctx)), "Do": b.Do(ctx, func(context.Context) error { return nil }), "State": firstOf(b.State(ctx)), "Reset": b.Reset(ctx),
	}
}

func makeDone(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	require.NoError(t, firstOf(client.NewOnce(name, latchkey.Forever).Do(t.Context(), returns("a result"))))
}

func makeRunning(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	begun, over := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = client.NewOnce(name, time.Hour).Do(context.Background(), func(context.Context) ([]byte, error) {
			close(begun)
			<-over
			return nil, nil
		}, latchkey.Lease(time.Hour))
	}()
	t.Cleanup(func() { close(over) })
	rig.Await(t, soon, "a run", begun)
}

func useOnce(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	o := client.NewOnce(name, time.Hour)
	_, _, err := o.Result(ctx)
	return map[string]error{
		"Do": firstOf(o.Do(ctx, returns("another"))), "Result": err, "Forget": o.Forget(ctx), "Inspect": firstOf(o.Inspect(ctx)),
	}
}

func makeRateLimiter(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	require.NoError(t, firstOf(client.NewRateLimiter(name, latchkey.Rate{N: 1, Per: time.Hour}).Allow(t.Context())))
}

func useRateLimiter(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	l := client.NewRateLimiter(name, latchkey.Rate{N: 10, Per: time.Second})
	return map[string]error{
		"Allow": firstOf(l.Allow(ctx)), "Wait": l.Wait(ctx), "ReserveN": firstOf(l.ReserveN(ctx, 3)),
		"SetRate": l.SetRate(ctx, latchkey.Rate{N: 1, Per: time.Hour}), "Inspect": firstOf(l.Inspect(ctx)),
	}
}

func usePermits(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	s := client.NewPermitSemaphore(name)
	return map[string]error{
		"Acquire": firstOf(s.Acquire(ctx)), "AcquireN": firstOf(s.AcquireN(ctx, 2)), "TryAcquire": firstOf(s.TryAcquireN(ctx, 100)),
		"TrySetPermits": firstOf(s.TrySetPermits(ctx, 1)), "SetPermits": s.SetPermits(ctx, 3), "AddPermits": s.AddPermits(ctx, 1),
		"Inspect": firstOf(statsOf(ctx, s)),
		"Release": firstOf(s.Release(ctx, anID)), "RemainingLease": firstOf(s.RemainingLease(ctx, anID)), "SetLease": s.SetLease(ctx, anID, time.Hour),
		"Expire": firstOf(s.SetTTL(ctx, time.Millisecond)), "SetTTL never": firstOf(s.SetTTL(ctx, latchkey.NoExpiry)),
		"Delete": firstOf(s.Delete(ctx)),
	}
}

func makeLatch(options ...latchkey.SetOption) func(*testing.T, *latchkey.Client, string) {
	return func(t *testing.T, client *latchkey.Client, name string) {
		t.Helper()
		require.NoError(t, firstOf(client.NewCountDownLatch(name).TrySetCount(t.Context(), 5, options...)))
	}
}

func makeOpenLatch(options ...latchkey.SetOption) func(*testing.T, *latchkey.Client, string) {
	return func(t *testing.T, client *latchkey.Client, name string) {
		t.Helper()
		makeLatch(options...)(t, client, name)
		require.NoError(t, firstOf(client.NewCountDownLatch(name).CountDownN(t.Context(), 5)))
	}
}

func useLatch(ctx context.Context, client *latchkey.Client, name string) map[string]error {
	l := client.NewCountDownLatch(name)
	return map[string]error{
		"Await": l.Await(ctx), "Count": firstOf(l.Count(ctx)), "CountDown": firstOf(l.CountDown(ctx)),
		"CountDownN": firstOf(l.CountDownN(ctx, 9)), "CountDownAs": firstOf(l.CountDownAs(ctx, "me")),
		"TrySetCount": firstOf(l.TrySetCount(ctx, 3)), "Delete": firstOf(l.Delete(ctx)),
	}
}

// Every operation of every kind of object is refused at once on the key of every other kind, by any
// client: one that holds the key does not wait for its own hold. The error names the kind of the
// key, and not a byte changes.
func TestEachKindOnTheKeyOfEachOther(t *testing.T) {
	t.Parallel()
	for there, owner := range objects {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, own %v", there, own), func(t *testing.T) {
				t.Parallel()
				server, base := rig.Shared(), rig.Name(t)
				admin, client := rig.NewAdmin(t, server), connect(t, server)
				asking := client
				if !own {
					asking = connect(t, server)
				}
				for asked, user := range objects {
					if user.use == nil || user.sort == owner.sort || strings.HasPrefix(there, "open latch") && !isNumber(user) {
						continue
					}
					name := base + " " + asked
					owner.make(t, client, name)
					before := content(admin, name)
					came := user.use(within(t, soon), asking, name)
					began := time.Now()
					for time.Since(began) < soon && slices.ContainsFunc(slices.Collect(maps.Values(came)), tellsTooLittle) {
						came = user.use(within(t, soon), asking, name)
					}
					for operation, err := range came {
						if operation == "Inspect" && strings.HasPrefix(there, "open latch") { // it has no key
							assert.ErrorIs(t, err, latchkey.ErrNotSet, asked)
							continue
						}
						assertWrongKind(t, err, asked+" "+operation, name, owner)
					}
					assert.Equal(t, before, content(admin, name), asked)
				}
			})
		}
	}
}

// isNumber reports whether objects of a kind are a number in Redis. Only a key of this library
// beside the number says of which kind it is.
func isNumber(o object) bool { return strings.HasSuffix(o.sort, " semaphore") || o.sort == "a latch" }

func assertWrongKind(t *testing.T, err error, what, name string, owner object) {
	t.Helper()
	if !assert.ErrorIs(t, err, latchkey.ErrWrongKind, what) {
		return
	}
	assert.ErrorContains(t, err, fmt.Sprintf("%q: the key is %s, not ", name, owner.sort), what)
	assert.Equal(t, 1, strings.Count(err.Error(), "latchkey: "), what)
}
