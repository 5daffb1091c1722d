package tests

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// plainRedis opens a go-redis client for a server of any kind.
func plainRedis(t *testing.T, server *rig.Server) redis.UniversalClient {
	t.Helper()
	at := rueidis.MustParseURL(server.URL())
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: at.InitAddress, MasterName: at.Sentinel.MasterSet, IsClusterMode: server.Clustered(),
	})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

// elsewhere makes one attempt at a lock of another library. The hold that it returns can be
// extended.
type elsewhere func(ctx context.Context) (holdElsewhere, error)

type holdElsewhere struct {
	extend, release func(ctx context.Context) error
}

// errBusyElsewhere is the error of each library when somebody else holds the lock.
var errBusyElsewhere = errors.New("busy")

// librariesOfTheRecipe are the libraries that docs/howto/from-redsync-and-redislock.md migrates
// from, set up as their users have them.
func librariesOfTheRecipe(t *testing.T, server *rig.Server, name string) map[string]elsewhere {
	t.Helper()
	client := plainRedis(t, server)
	return map[string]elsewhere{
		"redislock":                  withRedislock(client, name, nil),
		"redislock, metadata":        withRedislock(client, name, &redislock.Options{Metadata: `{"host": "a b", "job": 7}`}),
		"redislock, token":           withRedislock(client, name, &redislock.Options{Token: "worker-17"}),
		"redislock, token, metadata": withRedislock(client, name, &redislock.Options{Token: "worker-17", Metadata: "/host-1"}),
		"redsync":                    withRedsync(client, name),
		"redsync, value": withRedsync(client, name, redsync.WithGenValueFunc(func() (string, error) {
			return "request:4711", nil
		})),
		"by hand": byHand(client, name),
	}
}

func withRedislock(client redis.UniversalClient, name string, options *redislock.Options) elsewhere {
	locks := redislock.New(client)
	return func(ctx context.Context) (holdElsewhere, error) {
		lock, err := locks.Obtain(ctx, name, recipeLease, options)
		if errors.Is(err, redislock.ErrNotObtained) {
			return holdElsewhere{}, errors.Join(errBusyElsewhere, err)
		}
		return holdElsewhere{
			extend:  func(ctx context.Context) error { return lock.Refresh(ctx, recipeLease, nil) },
			release: func(ctx context.Context) error { return lock.Release(ctx) },
		}, err
	}
}

// unhurriedRedsync lets a server take a third of the expiry for its answer, instead of a twentieth.
var unhurriedRedsync = redsync.WithTimeoutFactor(1. / 3)

func withRedsync(client redis.UniversalClient, name string, options ...redsync.Option) elsewhere {
	locks := redsync.New(goredis.NewPool(client))
	return func(ctx context.Context) (holdElsewhere, error) {
		mu := locks.NewMutex(name, append(options, redsync.WithExpiry(recipeLease), unhurriedRedsync)...)
		err := mu.TryLockContext(ctx)
		if taken := new(redsync.ErrTaken); errors.As(err, &taken) {
			return holdElsewhere{}, errors.Join(errBusyElsewhere, err)
		}
		return holdElsewhere{
			extend:  func(ctx context.Context) error { return sure(mu.ExtendContext(ctx)) },
			release: func(ctx context.Context) error { return sure(mu.UnlockContext(ctx)) },
		}, err
	}
}

// sure returns an error if a call reports false.
func sure(done bool, err error) error {
	if err == nil && !done {
		err = errors.New("it was not done")
	}
	return err
}

func byHand(client redis.UniversalClient, name string) elsewhere {
	compareAndExpire := redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`)
	return func(ctx context.Context) (holdElsewhere, error) {
		const token = "0b1c6f6e-1c0e-4bd0-9d1c-6f1f5e7a3c11"
		got, err := client.SetNX(ctx, name, token, recipeLease).Result()
		if err == nil && !got {
			err = errBusyElsewhere
		}
		one := func(n int, err error) error { return sure(n == 1, err) }
		return holdElsewhere{
			extend: func(ctx context.Context) error {
				return one(compareAndExpire.Run(ctx, client, []string{name}, token, recipeLease.Milliseconds()).Int())
			},
			release: func(ctx context.Context) error {
				return one(compareAndDelete.Run(ctx, client, []string{name}, token).Int())
			},
		}, err
	}
}

// A mutex and a lock of another library under the same name exclude each other, and neither can
// extend or release the other's hold.
func TestMutexBesideOtherLibraries(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for what := range librariesOfTheRecipe(t, server, "") {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			prefix, ctx := rig.Name(t)+":", within(t, 3*soon)
			other := librariesOfTheRecipe(t, server, prefix+"42")[what]
			mutex := connect(t, server, latchkey.Options{KeyPrefix: prefix}).NewMutex("42")

			theirs, err := other(ctx)
			require.NoError(t, err)
			_, err = mutex.TryLock(ctx)
			require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			require.NoError(t, theirs.extend(ctx))
			found, err := mutex.Inspect(ctx)
			require.NoError(t, err)
			require.Len(t, found.Holders, 1)
			assert.Equal(t, rig.NewAdmin(t, server).Text("GET", prefix+"42"), found.Holders[0].Owner.String())
			waiter := lockInBackground(ctx, mutex)
			require.NoError(t, theirs.release(ctx))
			got := rig.Await(t, soon, "the waiter", waiter)
			require.NoError(t, got.err)

			_, err = other(ctx)
			require.ErrorIs(t, err, errBusyElsewhere)
			require.Error(t, theirs.extend(ctx))
			require.Error(t, theirs.release(ctx))
			require.NoError(t, got.hold.Extend(ctx, time.Minute), "nobody has touched it")
			mustUnlock(t, got.hold)
			theirs, err = other(ctx)
			require.NoError(t, err)
			require.NoError(t, theirs.release(ctx))
		})
	}
}

// Values of other libraries that are not tokens are an error, and nobody waits for them.
func TestMutexRefusesValuesOfOtherLibraries(t *testing.T) {
	server, name, ctx := rig.Shared(), rig.Name(t), within(t, 3*soon)
	client, mutex := plainRedis(t, server), connect(t, server).NewMutex(name)
	for what, other := range map[string]elsewhere{
		"a short token":           withRedislock(client, name, &redislock.Options{Token: "worker"}),
		"metadata of a kilobyte":  withRedislock(client, name, &redislock.Options{Metadata: strings.Repeat("x", 1003)}),
		"a short token with JSON": withRedislock(client, name, &redislock.Options{Token: "worker-17", Metadata: `{"host": "a"}`}),
		"a number":                withRedsync(client, name, redsync.WithGenValueFunc(func() (string, error) { return "1763895600", nil })),
	} {
		theirs, err := other(ctx)
		require.NoError(t, err, what)
		_, err = mutex.Lock(ctx)
		assert.ErrorIs(t, err, latchkey.ErrWrongKind, what)
		require.NoError(t, theirs.release(ctx), what)
	}
}

// A redislock client waits in its own retry loop: only one holder is inside at a time.
func TestMutexAndRedislock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	locks := redislock.New(plainRedis(t, server))
	obtaining := func(ctx context.Context) (taken, error) {
		lock, err := locks.Obtain(ctx, name, recipeLease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(2 * time.Millisecond)})
		if err != nil {
			return taken{}, err
		}
		return taken{release: lock.Release}, nil
	}
	c := &contest{lasts: rig.Lasting(time.Second), both: true, hold: time.Millisecond, dump: dumpOf(t, []*rig.Server{server}, name)}
	c.contenders = []contender{
		{name: "ours", goroutines: 2, acquire: locking(connect(t, server).NewMutex(name))},
		{name: "redislock", goroutines: 2, acquire: obtaining, polls: true},
	}
	c.run(t)
}

// errorsElsewhere are the errors of the libraries, as docs/howto/from-redsync-and-redislock.md
// lists them.
var errorsElsewhere = map[string]struct {
	busy, expired, twice, taken, extended func(error) bool
}{
	"redsync": {
		busy: isTaken, expired: is(redsync.ErrLockAlreadyExpired), twice: is(redsync.ErrLockAlreadyExpired), taken: isTaken, extended: isTaken,
	},
	"redislock": {
		busy: is(redislock.ErrNotObtained), expired: is(redislock.ErrLockNotHeld), twice: is(redislock.ErrLockNotHeld),
		taken: is(redislock.ErrLockNotHeld), extended: is(redislock.ErrNotObtained),
	},
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func isTaken(err error) bool { taken := new(redsync.ErrTaken); return errors.As(err, &taken) }

// The errors of each library for the same failures.
func TestErrorsOfOtherLibraries(t *testing.T) {
	server := rig.Shared()
	for what, say := range errorsElsewhere {
		t.Run(what, func(t *testing.T) {
			name, ctx := rig.Name(t), within(t, 3*soon)
			other, admin, mutex := librariesOfTheRecipe(t, server, name)[what], rig.NewAdmin(t, server), connect(t, server).NewMutex(name)
			theirs, err := other(ctx)
			require.NoError(t, err)
			_, err = other(ctx)
			assert.True(t, say.busy(err), "busy: %v", err)
			admin.Do("DEL", name)
			assert.True(t, say.expired(theirs.release(ctx)), "expired")
			ours := mustLock(t, mutex)
			assert.True(t, say.taken(theirs.release(ctx)), "taken")
			err = theirs.extend(ctx)
			assert.True(t, say.extended(err), "extended: %v", err)
			admin.Do("DEL", name)
			require.ErrorIs(t, ours.Extend(ctx, time.Minute), latchkey.ErrLost)
			err = ours.Unlock(ctx)
			require.ErrorIs(t, err, latchkey.ErrNotHeld)
			require.ErrorIs(t, err, latchkey.ErrLost)

			theirs, err = other(ctx)
			require.NoError(t, err)
			require.NoError(t, theirs.release(ctx))
			assert.True(t, say.twice(theirs.release(ctx)), "twice")
			ours = mustLock(t, mutex)
			mustUnlock(t, ours)
			err = ours.Unlock(ctx)
			require.ErrorIs(t, err, latchkey.ErrNotHeld)
			require.NotErrorIs(t, err, latchkey.ErrLost)
		})
	}
}

// The reply to an acquisition is lost. go-redis sends SET NX again, which finds the client's own
// key: nobody has the lock until the key expires. Latchkey leaves nothing behind.
func TestLostReplyOfAnAcquisition(t *testing.T) {
	rig.Need(t, rig.Single)
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	tap := rig.NewTap(t, server)
	client := redis.NewClient(&redis.Options{Addr: tap.Addr()})
	defer func() { assert.NoError(t, client.Close()) }()
	require.NoError(t, client.Ping(within(t, soon)).Err())
	hit := tap.Lose(1, rig.Named("SET"), rig.Cut)
	got, err := client.SetNX(within(t, soon), name, "0b1c6f6e-1c0e-4bd0-9d1c-6f1f5e7a3c11", recipeLease).Result()
	rig.Await(t, soon, "the loss", hit)
	require.NoError(t, err)
	assert.False(t, got)
	assert.True(t, admin.Exists(name))
	admin.Do("DEL", name)

	mutex := connectVia(t, server, tap.Addr()).NewMutex(name)
	mustUnlock(t, mustLock(t, mutex))
	hit = tap.Lose(1, rig.Any, rig.Cut)
	hold, err := mutex.TryLock(within(t, soon))
	rig.Await(t, soon, "the loss", hit)
	require.NoError(t, err, "it was asked again")
	mustUnlock(t, hold)
	rig.Eventually(t, soon, "nothing is left", free(admin, name))
}
