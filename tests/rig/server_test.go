package rig_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestFreshServersAreApart(t *testing.T) {
	a, b := rig.NewAdmin(t, rig.Fresh(t)), rig.NewAdmin(t, rig.Fresh(t))
	a.Do("SET", "key", "1")
	assert.True(t, a.Exists("key"))
	assert.False(t, b.Exists("key"))
}

func TestFreshTakesSettings(t *testing.T) {
	rig.Need(t, rig.Settings)
	admin := rig.NewAdmin(t, rig.Fresh(t, "--maxmemory", "3mb"))
	settings, err := admin.Do("CONFIG", "GET", "maxmemory").AsStrMap()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"maxmemory": "3145728"}, settings)
}

// A failed test may leave a server paused for the next test.
func TestPausedTwice(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	server.Pause(t)
	server.Pause(t)
	server.Resume(t)
	require.NoError(t, do(server.Raw(t), "PING").Error())
}

func TestPausedServerIsSilent(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := server.Raw(t)
	require.NoError(t, do(client, "SET", "a", "1").Error())

	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, client.Do(ctx, client.B().Get().Key("a").Build()).Error())

	server.Resume(t)
	rig.Eventually(t, soon, "it answers again", func() error { return do(client, "GET", "a").Error() })
}

func TestKilledServerComesBackEmptyOnItsPort(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := server.Raw(t)
	require.NoError(t, do(client, "SET", "a", "1").Error())

	server.Kill(t)
	require.Error(t, do(client, "SET", "a", "2").Error())
	server.Restart(t)
	rig.Eventually(t, soon, "it is back and empty", func() error {
		if err := do(client, "GET", "a").Error(); !rueidis.IsRedisNil(err) {
			return fmt.Errorf("GET: %w", err)
		}
		return nil
	})
}

func TestLinkSilenceAndCut(t *testing.T) {
	link := rig.NewLink(t, rig.Shared())
	client, err := rueidis.NewClient(rig.Shared().Options(link.Addr()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	get := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		return do2(ctx, client, "EXISTS", "a")
	}
	answers := func() error { return get(2 * time.Second) }
	require.NoError(t, get(soon))

	link.Silence()
	assert.ErrorIs(t, get(300*time.Millisecond), context.DeadlineExceeded)
	link.Heal()
	rig.Eventually(t, soon, "the link heals", answers)

	link.Cut()
	assert.Error(t, get(2*time.Second))
	link.Restore()
	rig.Eventually(t, soon, "the link is restored", answers)

	link.DelayReplies(100 * time.Millisecond)
	start := time.Now()
	assert.NoError(t, get(soon))
	assert.GreaterOrEqual(t, time.Since(start), 100*time.Millisecond)
}

func do2(ctx context.Context, client rueidis.Client, words ...string) error {
	return client.Do(ctx, rig.Build(client, words...)).Error()
}

func TestAdminDump(t *testing.T) {
	admin := rig.NewAdmin(t, rig.Shared())
	name := rig.Name(t) + "[*?]"
	admin.Do("HSET", name, "owner", "2")
	admin.Do("PEXPIRE", name, "60000")
	admin.Do("SET", "token:{"+name+"}", "3")
	admin.Do("ZADD", name+":z", "12", "m")
	admin.Do("RPUSH", name+":l", "b", "a")

	dump := admin.Dump(name)
	require.Len(t, dump, 4)
	assert.Equal(t, map[string]string{"owner": "2"}, dump[name].Hash)
	assert.InDelta(t, 60_000, dump[name].TTL.Milliseconds(), 5_000)
	assert.Equal(t, rig.Entry{Type: "string", String: "3", TTL: rig.NoTTL}, dump["token:{"+name+"}"])
	assert.Equal(t, []string{"m 12"}, dump[name+":z"].Members)
	assert.Equal(t, []string{"b", "a"}, dump[name+":l"].Members)
}

// A Monitor shows only commands at the top level; the statistics also count commands inside
// scripts.
func TestAdminCountsCommands(t *testing.T) {
	rig.Need(t, rig.Stats)
	server := rig.Fresh(t)
	admin, client := rig.NewAdmin(t, server), server.Raw(t)
	before, monitor := admin.CommandStats(), admin.Watch()

	do(client, "SET", "a", "1")
	do(client, "EVAL", "return redis.call('GET', KEYS[1])", "1", "a")

	assert.Equal(t, []string{`"SET" "a" "1"`, `"EVAL" "return redis.call('GET', KEYS[1])" "1" "a"`}, monitor.Stop())
	diff := admin.Since(before)
	assert.Equal(t, int64(1), diff["set"])
	assert.Equal(t, int64(1), diff["eval"])
	assert.Equal(t, int64(1), diff["get"])
}

func TestAdminCountsConnectionsAndSubscriptions(t *testing.T) {
	rig.Need(t, rig.Stats)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	assert.Zero(t, admin.Connections())
	client := server.Raw(t)
	subscribe(t, client, "news")
	assert.Equal(t, 2, admin.Connections())
	assert.Equal(t, int64(1), admin.Subscribers("news"))
	assert.Equal(t, []string{"news"}, admin.Channels("new"))
	assert.Empty(t, admin.Channels("old"))
}
