package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Latchkey adds one connection to those of go-redis, and one for messages while somebody waits,
// whatever the number of locks and goroutines.
func TestGoRedis_connections(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	rig.Need(t, rig.Single)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	o := &redis.Options{Addr: server.Addr(), PoolSize: 5, MinIdleConns: 5}
	other := redis.NewClient(o)
	defer func() { assert.NoError(t, other.Close()) }()
	option := converted(t, o)
	option.ClientName, option.ReadBufferEachConn, option.WriteBufferEachConn = "latchkey", 32<<10, 32<<10
	client := open(t, option, latchkey.Options{})
	count := func() int { return strings.Count(admin.Text("CLIENT", "LIST"), " name=latchkey ") }
	eachName(t, 100, 20, func(name string) {
		assert.NoError(t, client.NewLock(name).Do(within(t, soon), func(ctx context.Context) error {
			return other.Set(ctx, "data:"+name, "x", 0).Err()
		}))
	})
	assert.Equal(t, 1, count(), "nobody waited for a message")
	name := rig.Name(t)
	hold := mustLock(t, open(t, converted(t, o), latchkey.Options{}).NewMutex(name))
	waiters := rig.Goroutines(t)
	for range 20 {
		waiters.Go(func() {
			assert.NoError(t, client.NewMutex(name).Do(within(t, soon), func(context.Context) error { return nil }))
		})
	}
	rig.Eventually(t, soon, "two connections", func() error {
		if n := count(); n != 2 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	mustUnlock(t, hold)
	waiters.Wait()
	assert.Equal(t, 2, count())
}

// When a lock is lost, go-redis does not send further commands under its context. A command that
// waits for its reply goes on until its own deadline or, if go-redis is configured for that, the
// deadline of the context.
func TestGoRedis_work_under_a_lost_lock(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	server, name := rig.Shared(), rig.Name(t)
	other, option := goRedis(t, server, func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true })
	lock := open(t, option, latchkey.Options{}).NewLock(name)
	admin, hold := rig.NewAdmin(t, server), mustLock(t, lock)
	ctx := hold.Context(t.Context())
	popped := make(chan error, 1)
	go func() { popped <- other.BLPop(ctx, time.Minute, name+":list").Err() }()
	rig.Eventually(t, soon, "the command is under way", func() error {
		if list := admin.Text("CLIENT", "LIST"); !strings.Contains(list, " cmd=blpop ") {
			return errors.New(list)
		}
		return nil
	})
	admin.Do("DEL", name)
	require.Error(t, hold.Extend(within(t, soon), time.Minute))
	rig.Await(t, soon, "the end of the context", ctx.Done())
	require.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
	err := other.Set(ctx, name+":data", "late", 0).Err()
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, latchkey.ErrLost, "go-redis tells Err, not Cause")
	assert.Zero(t, admin.Int("EXISTS", name+":data"))
	assert.Empty(t, popped, "it was not ended by the loss")
	admin.Do("RPUSH", name+":list", "x")
	require.NoError(t, rig.Await(t, soon, "the command under way", popped))
	require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
}

// A holder that has lost a fenced lock without knowing it cannot write after the next holder.
func TestGoRedis_fencing(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	other, option := goRedis(t, server, func(*redis.UniversalOptions) {})
	lock := open(t, option, latchkey.Options{}).NewFencedLock(name)
	first := mustLock(t, lock)
	late := first.Context(t.Context())
	require.NoError(t, fencedSet(late, lock, other, name+":data", "first"))
	_, err := lock.ForceUnlock(within(t, soon))
	require.NoError(t, err)
	require.NoError(t, lock.Do(within(t, soon), func(ctx context.Context) error {
		return fencedSet(ctx, lock, other, name+":data", "second")
	}))
	require.ErrorIs(t, fencedSet(context.WithoutCancel(late), lock, other, name+":data", "late"), latchkey.ErrLost)
	value, err := other.HGet(within(t, soon), name+":data", "value").Result()
	require.NoError(t, err)
	assert.Equal(t, "second", value)
	_ = first.Unlock(t.Context())
}

// With a user of its own the application cannot touch the keys of locks.
func TestGoRedis_users(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	rig.Need(t, rig.Single)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	admin.Do(append([]string{"ACL", "SETUSER", "latchkey"}, documentedACL(t, 0)...)...)
	admin.Do(strings.Fields("ACL SETUSER app reset resetchannels on >SECRET ~app:* &app:* +@all -@admin -@dangerous")...)
	client := open(t, converted(t, &redis.Options{Addr: server.Addr(), Username: "latchkey", Password: "SECRET"}),
		latchkey.Options{KeyPrefix: "orders:"})
	other := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "app", Password: "SECRET"})
	defer func() { assert.NoError(t, other.Close()) }()
	require.NoError(t, client.Check(within(t, soon)))
	require.NoError(t, client.NewLock("42").Do(within(t, soon), func(ctx context.Context) error {
		for what, err := range map[string]error{
			"DEL": other.Del(ctx, "orders:42").Err(), "SET": other.Set(ctx, "orders:42", "x", 0).Err(),
			"FLUSHDB": other.FlushDB(ctx).Err(), "queue": other.Del(ctx, "latchkey_queue:{orders:42}").Err(),
		} {
			assert.ErrorContains(t, err, "NOPERM", what)
		}
		return other.Set(ctx, "app:42", "x", 0).Err()
	}))
}

// If an application removes the key of a lock, the holder learns of it at the next renewal. If it
// turns the key into data, every call returns an error and leaves the key as it is.
func TestGoRedis_commands_on_a_lock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	other, option := goRedis(t, server, func(*redis.UniversalOptions) {})
	lock := open(t, option, latchkey.Options{Lease: 600 * time.Millisecond, Tuning: latchkey.Tuning{PollCeiling: 200 * time.Millisecond}}).NewLock(name)
	hold := mustLock(t, lock)
	require.NoError(t, other.Del(within(t, soon), name).Err())
	rig.Await(t, soon, "the holder is told", hold.Lost())
	require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
	require.NoError(t, other.HSet(within(t, soon), name, "total", 7).Err())
	_, err := lock.Lock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	require.NoError(t, other.Del(within(t, soon), name).Err())
}

// Commands with the go-redis API and locks share the connections of a rueidis client.
func TestGoRedis_adapter(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	shared, err := rueidis.NewClient(server.Options(server.Addr()))
	require.NoError(t, err)
	defer shared.Close()
	client, err := latchkey.New(shared, latchkey.Options{})
	require.NoError(t, err)
	data := rueidiscompat.NewAdapter(shared)
	require.NoError(t, client.NewLock(name).Do(within(t, soon), func(ctx context.Context) error {
		return data.Set(ctx, name+":data", "x", time.Minute).Err()
	}))
	require.NoError(t, client.Close(within(t, soon)))
	require.NoError(t, data.Del(within(t, soon), name+":data").Err(), "the rueidis client is still open")
}
