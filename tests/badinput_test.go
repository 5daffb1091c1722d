package tests

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// sendsNothing runs f with a client and fails the test if the client sends a command.
func sendsNothing(t *testing.T, f func(client *latchkey.Client)) {
	t.Helper()
	tap := rig.NewTap(t, rig.Shared())
	client := connectVia(t, rig.Shared(), tap.Addr())
	tap.Forget()
	f(client)
	assert.Empty(t, tap.Commands())
}

func TestBadNames(t *testing.T) {
	bad := map[string]string{
		"empty": "", "too long": strings.Repeat("x", longestName+1), "not UTF-8": "a\xffb",
		"stray opening brace": "a{b", "stray closing brace": "a}b", "empty braces": "a{}b", "nested braces": "{a{b}}",
	}
	eachKind(t, func(t *testing.T, k kind) {
		sendsNothing(t, func(client *latchkey.Client) {
			for what, name := range bad {
				for _, err := range everyCall(t, client, k.open(client, name)) {
					assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
				}
			}
		})
	})
}

// everyCall returns the errors of all operations on a lock.
func everyCall(t *testing.T, client *latchkey.Client, lock anyLock) []error {
	t.Helper()
	ctx := t.Context()
	hold, lockErr := lock.Lock(ctx)
	assert.Nil(t, hold)
	hold, tryErr := lock.TryLock(ctx)
	assert.Nil(t, hold)
	_, inspectErr := lock.Inspect(ctx)
	_, forceErr := lock.ForceUnlock(ctx)
	_, clientErr := client.Inspect(ctx, lock.Name())
	_, clientForceErr := client.ForceUnlock(ctx, lock.Name())
	doErr := lock.Do(ctx, func(context.Context) error { t.Error("it is called"); return nil })
	return []error{lockErr, tryErr, inspectErr, forceErr, clientErr, clientForceErr, doErr}
}

// Odd names are valid: such locks can be acquired, inspected and released.
func TestOddNames(t *testing.T) {
	client, admin := connect(t, rig.Shared()), rig.NewAdmin(t, rig.Shared())
	for _, odd := range []string{
		"x", " ", "a b", "a:b", "ä€😀", "{tag}", "{a}{b}", "a\nb", "a\x00b", "*", "[a-z]", `"`, `\`,
		strings.Repeat("y", 400),
	} {
		name := rig.Name(t) + odd
		hold, err := client.NewFencedLock(name).Lock(t.Context())
		require.NoError(t, err, "%q", name)
		assert.True(t, admin.Exists(name))
		i, err := client.Inspect(t.Context(), name)
		require.NoError(t, err)
		assert.True(t, i.Locked())
		mustUnlock(t, hold)
		assert.False(t, admin.Exists(name))
	}
}

func TestBadDurations(t *testing.T) {
	bad := map[string]latchkey.TryLockOption{
		"lease 0": latchkey.Lease(0), "lease below zero": latchkey.Lease(-time.Second),
		"lease below a millisecond": latchkey.Lease(time.Millisecond - 1),
		"lease 30 without a unit":   latchkey.Lease(30),
		"lease beyond the range":    latchkey.Lease(math.MaxInt64),
		"maximum hold 0":            latchkey.MaxHold(0), "maximum hold below zero": latchkey.MaxHold(-1),
		"maximum hold beyond the range": latchkey.MaxHold(math.MaxInt64),
		"no owner":                      latchkey.As(latchkey.Owner{}),
		"no option":                     nil,
	}
	eachKind(t, func(t *testing.T, k kind) {
		sendsNothing(t, func(client *latchkey.Client) {
			lock := k.open(client, "name")
			for what, option := range bad {
				_, err := lock.Lock(t.Context(), option)
				assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
				_, err = lock.TryLock(t.Context(), option)
				assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
			}
		})
	})
}

// Every duration gives either an error or a key with that time to live, rounded up to the
// millisecond.
func TestAnyLeaseIsHonouredOrRefused(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		server := rig.Shared()
		admin, client := rig.NewAdmin(t, server), connect(t, server)
		for i := range 100 {
			// Each has its own name, because a lease of a few milliseconds ends for the holder
			// slightly before the key expires.
			name, lease := fmt.Sprintf("%s %d", rig.Name(t), i), randomDuration()
			before := time.Now()
			hold, err := k.open(client, name).TryLock(t.Context(), latchkey.Lease(lease))
			if err != nil {
				refusedLease(t, lease, err)
				continue
			}
			ttl, took := admin.PTTL(name), time.Since(before)
			if lease > tooShort { // a shorter one may have expired by now
				assert.LessOrEqual(t, ttl, lease+time.Millisecond)
				assert.GreaterOrEqual(t, ttl, lease-took-time.Millisecond)
			}
			if err := hold.Unlock(t.Context()); err != nil {
				assert.Less(t, lease, tooShort)
				assert.ErrorIs(t, err, latchkey.ErrLost)
			}
		}
	})
}

// tooShort is a lease that may end before the reply arrives, on a busy machine.
const tooShort = 10 * time.Second

// refusedLease accepts two reasons: the lease is invalid, or so short that it ended before the
// reply arrived.
func refusedLease(t *testing.T, lease time.Duration, err error) {
	t.Helper()
	if lease < shortestLease || lease > longestLease {
		assert.ErrorIs(t, err, latchkey.ErrInvalid, "%v", lease)
		return
	}
	assert.Less(t, lease, tooShort, "%v", err)
	assert.ErrorIs(t, err, latchkey.ErrUnavailable)
}

// randomDuration returns a duration of any magnitude, sometimes negative.
func randomDuration() time.Duration {
	d := time.Duration(rand.Int64() >> rand.IntN(63))
	if rand.IntN(10) == 0 {
		return -d
	}
	return d
}

// A lease of 1.5 ms lasts two milliseconds, not one.
func TestLeaseIsRoundedUp(t *testing.T) {
	tap := rig.NewTap(t, rig.Shared())
	client := connectVia(t, rig.Shared(), tap.Addr())
	_, _ = client.NewMutex(rig.Name(t)).TryLock(t.Context(), latchkey.Lease(1500*time.Microsecond))
	require.NotEmpty(t, tap.Commands())
	args := tap.Commands()[0].Args
	assert.Equal(t, "2", args[len(args)-1])
}

func TestBadOptions(t *testing.T) {
	bad := map[string]latchkey.Options{
		"lease below a millisecond":     {Lease: 1},
		"lease below zero":              {Lease: -time.Second},
		"lease beyond the range":        {Lease: math.MaxInt64},
		"poll ceiling beyond the lease": {Lease: time.Second, Tuning: latchkey.Tuning{PollCeiling: 2 * time.Second}},
		"poll ceiling below zero":       {Tuning: latchkey.Tuning{PollCeiling: -1}},
		"retry budget beyond the lease": {Lease: time.Second, RetryBudget: 2 * time.Second},
		"retry budget below zero":       {RetryBudget: -1},
		"stale waiters below zero":      {Tuning: latchkey.Tuning{StaleWaiterTimeout: -1}},
		"waiters that are never stale":  {Tuning: latchkey.Tuning{StaleWaiterTimeout: math.MaxInt64}},
		"Redisson's wait below zero":    {Tuning: latchkey.Tuning{RedissonFairWait: -1}},
		"Redisson's wait without end":   {Tuning: latchkey.Tuning{RedissonFairWait: math.MaxInt64}},
		"in flight below zero":          {Tuning: latchkey.Tuning{MaxInFlight: -1}},
		"too many in flight":            {Tuning: latchkey.Tuning{MaxInFlight: 100_000}},
		"prefix and mapper":             {KeyPrefix: "a", NameMapper: func(s string) string { return s }},
	}
	for what, options := range bad {
		t.Run(what, func(t *testing.T) {
			_, err := latchkey.Connect(t.Context(), rig.Shared().URL(), options)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
			_, err = latchkey.New(rig.Shared().Raw(t), options)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
		})
	}
	_, err := latchkey.New(nil, latchkey.Options{})
	assert.ErrorIs(t, err, latchkey.ErrInvalid)
	unmapped := latchkey.Options{Tuning: latchkey.Tuning{AddressMapper: func(s string) string { return s }}}
	_, err = latchkey.New(rig.Shared().Raw(t), unmapped)
	assert.ErrorIs(t, err, latchkey.ErrInvalid, "the connections are somebody else's")
}

// The client dials the address that the mapper returns, not the configured one. On servers that
// announce addresses of other servers, every test with a proxy tests the mapper.
func TestAddressMapper(t *testing.T) {
	rig.Need(t, rig.Private, rig.Single)
	server, asked := rig.Fresh(t), make(chan string, 100)
	client, err := latchkey.Connect(within(t, soon), server.URLVia("redis.internal:6379"), latchkey.Options{
		Tuning: latchkey.Tuning{AddressMapper: func(address string) string {
			asked <- address
			return server.Addr()
		}},
	})
	require.NoError(t, err)
	mustUnlock(t, mustLock(t, client.NewLock(rig.Name(t))))
	require.NoError(t, client.Close(within(t, soon)))
	for range len(asked) {
		assert.Equal(t, "redis.internal:6379", <-asked)
	}
}

func TestBadURLs(t *testing.T) {
	for _, url := range []string{
		"", "localhost:6379", "http://localhost:6379", "redis://localhost:1,localhost:2", "redis://localhost:x", "%zz",
	} {
		_, err := latchkey.Connect(within(t, soon), url, latchkey.Options{})
		assert.ErrorIs(t, err, latchkey.ErrInvalid, "%q", url)
	}
}

// A mapper that returns an invalid key is detected when a lock is used.
func TestBadMappedName(t *testing.T) {
	client := connect(t, rig.Shared(), latchkey.Options{NameMapper: func(string) string { return "{}" }})
	_, err := client.NewLock("fine").TryLock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrInvalid)
}

// If the key holds another kind of object, every call fails and changes nothing.
func TestWrongKindOfKey(t *testing.T) {
	others := map[string][]string{
		"string": {"SET", "", "data"}, "list": {"RPUSH", "", "data"},
		"set": {"SADD", "", "data"}, "zset": {"ZADD", "", "1", "data"}, "hash": {"HSET", "", "mode", "read"},
	}
	eachKind(t, func(t *testing.T, k kind) {
		for what, command := range others {
			if what == "string" && !k.reentrant || what == "hash" && !k.reentrant {
				continue // a foreign string is a held mutex; a hash is covered by the lock below
			}
			t.Run(what, func(t *testing.T) {
				server, name := rig.Shared(), rig.Name(t)
				admin := rig.NewAdmin(t, server)
				if what == "hash" && k.sided {
					command = []string{"HSET", "", "owner", "1"} // a plain lock, which none of these kinds is
				}
				command[1] = name
				admin.Do(command...)
				before := admin.Dump(name)
				client := connect(t, server)
				lock := k.open(client, name)

				ctx := within(t, 3*soon)
				hold, err := lock.Lock(ctx)
				assert.Nil(t, hold)
				assert.ErrorIs(t, err, latchkey.ErrWrongKind)
				assert.NoError(t, ctx.Err(), "it is no use to wait")
				_, err = lock.TryLock(t.Context())
				assert.ErrorIs(t, err, latchkey.ErrWrongKind)
				_, err = lock.ForceUnlock(t.Context())
				assert.ErrorIs(t, err, latchkey.ErrWrongKind)
				assert.Equal(t, before, admin.Dump(name))
				admin.Do("DEL", name)
			})
		}
	})
}

// A call that has no function to run is refused before it sends anything: otherwise it would
// acquire the lock and panic.
func TestNoFunction(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	lock, other := client.NewLock(name), client.NewLock(name+"other")
	mustUnlock(t, mustLock(t, lock))
	tap.Forget()
	for what, do := range map[string]func(context.Context) error{
		"a lock":      func(ctx context.Context) error { return lock.Do(ctx, nil) },
		"two locks":   func(ctx context.Context) error { return latchkey.NewMultiLock(lock, other).Do(ctx, nil) },
		"a permit":    func(ctx context.Context) error { return client.NewPermitSemaphore(name).Do(ctx, nil) },
		"a barrier":   func(ctx context.Context) error { return client.NewBarrier(name, 1).Do(ctx, nil) },
		"a Once":      func(ctx context.Context) error { return firstOf(client.NewOnce(name, time.Hour).Do(ctx, nil)) },
		"an election": func(ctx context.Context) error { return client.NewElection(name).Run(ctx, "me", nil) },
	} {
		err := do(within(t, soon))
		require.ErrorIs(t, err, latchkey.ErrInvalid, what)
		assert.ErrorContains(t, err, "the function is nil", what)
	}
	assert.Empty(t, tap.Commands())
}

// A Mutex and a Lock of the same name do not mix: each reports the other as a different kind.
func TestLockMeetsMutex(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	hold := mustLock(t, client.NewLock(name))
	_, err := client.NewMutex(name).TryLock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrWrongKind)
	mustUnlock(t, hold)

	hold = mustLock(t, client.NewMutex(name))
	_, err = client.NewLock(name).TryLock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrWrongKind)
	mustUnlock(t, hold)
}

// The methods of a nil Hold return ErrNotHeld.
func TestNilHold(t *testing.T) {
	var hold *latchkey.Hold
	assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
	assert.ErrorIs(t, hold.Extend(t.Context(), time.Second), latchkey.ErrNotHeld)
	assert.ErrorIs(t, hold.Err(), latchkey.ErrNotHeld)
	assert.ErrorIs(t, context.Cause(hold.Context(t.Context())), latchkey.ErrNotHeld)
	rig.Await(t, soon, "the loss", hold.Lost())
	assert.Zero(t, hold.ValidFor())
	assert.Zero(t, hold.Token())
	assert.Zero(t, countOf(hold))
	assert.Empty(t, hold.Name())
	assert.True(t, hold.Owner().IsZero())
	assert.True(t, hold.Share().IsZero())
}
