package tests

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// After Close the pool of a borrowed client is the program's again.
func TestClose_gives_the_pool_back(t *testing.T) {
	t.Parallel()
	f := newFixedEndpoint(t)
	option := f.pair.Master.Options(f.tap.Addr())
	option.BlockingPoolSize = 1
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	client, err := latchkey.New(redis, latchkey.Options{Label: latchkey.NoLabel})
	require.NoError(t, err)
	mustUnlock(t, mustLock(t, client.NewMutex("a")))
	f.swap()
	mustUnlock(t, mustLock(t, client.NewMutex("a")))
	require.NoError(t, client.Close(within(t, soon)))
	connections := f.tap.Connections()
	start, got := time.Now(), make(chan func(), 1)
	go func() {
		conn, release := redis.Dedicate()
		got <- func() { conn.Close(); release() }
	}()
	(rig.Await(t, soon, "a connection of the pool", got))()
	t.Logf("%d connections after Close; the pool was free after %v", connections, time.Since(start))
	assert.Less(t, time.Since(start), 3*time.Second)
}

// Close returns although the program has the only connection of the pool: the listener waits for
// it.
func TestClose_while_the_pool_is_in_use(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	notInCluster(t, "one pool")
	option := server.Options(server.Addr())
	option.BlockingPoolSize = 1
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	conn, release := redis.Dedicate()
	defer func() { conn.Close(); release() }()
	client, err := latchkey.New(redis, latchkey.Options{Label: latchkey.NoLabel})
	require.NoError(t, err)
	name := rig.Name(t)
	mustLock(t, connect(t, server).NewLock(name))
	_, err = refusedFrom(t, 300*time.Millisecond, func(wait time.Duration) error {
		return firstOf(client.NewLock(name).Lock(t.Context(), latchkey.Wait(wait)))
	})
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	closed := make(chan error, 1)
	go func() { closed <- client.Close(context.Background()) }()
	assert.NoError(t, rig.Await(t, 8*time.Second, "the end of Close", closed))
}
