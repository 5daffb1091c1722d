package latchkeygoredis_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeygoredis"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

var someTLS = &tls.Config{ServerName: "redis", MinVersion: tls.VersionTLS12}

// On real servers, Sentinels and clusters, the tests of ../tests use these conversions:
// TestGoRedis_….

// within returns a context that a busy machine does not outlast.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Latchkey uses the database of the server that go-redis uses, whatever the settings are.
func TestOpenUsesTheSameServer(t *testing.T) {
	t.Parallel()
	addr := strings.TrimPrefix(latchkeytest.NewServer(t).URL(), "redis://")
	var dialed atomic.Int32
	for what, o := range map[string]*redis.Options{
		"none":        {Addr: addr},
		"a database":  {Addr: addr, DB: 3},
		"RESP2":       {Addr: addr, Protocol: 2},
		"own dialing": {Addr: addr, Dialer: counting(&dialed)},
	} {
		t.Run(what, func(t *testing.T) {
			other := redis.NewClient(o)
			defer func() { require.NoError(t, other.Close()) }()
			before := dialed.Load()
			client, err := latchkeygoredis.Open(within(t), o, latchkey.Options{})
			require.NoError(t, err)
			assert.Equal(t, o.Dialer != nil, dialed.Load() > before, "Open has dialed by it")
			seesAsOther(t, other, client)
			require.NoError(t, client.Close(within(t)))

			client, err = latchkeygoredis.Open(within(t), other.Options(), latchkey.Options{}) // with its defaults
			require.NoError(t, err)
			seesAsOther(t, other, client)
			require.NoError(t, client.Close(within(t)))
		})
	}
}

// seesAsOther checks that a go-redis client uses the database in which a client of Latchkey stores
// its locks.
func seesAsOther(t *testing.T, other redis.UniversalClient, client *latchkey.Client) {
	t.Helper()
	hold, err := client.NewMutex("name").Lock(within(t))
	require.NoError(t, err)
	value, err := other.Get(within(t), "name").Result()
	require.NoError(t, err)
	assert.Equal(t, hold.Owner().String(), value)
	require.NoError(t, hold.Unlock(within(t)))
	require.ErrorIs(t, other.Get(within(t), "name").Err(), redis.Nil)
}

func counting(dialed *atomic.Int32) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

// Settings that locks cannot do without, and that have no counterpart, are refused before anything
// is dialed.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	onConnect := func(context.Context, *redis.Conn) error { return nil }
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"a:1"}})
	defer func() { _ = failover.Close() }()
	both := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"a:1"}})
	defer func() { _ = both.Close() }()
	for _, refused := range []struct {
		settings any
		says     string
	}{
		{redis.Options{OnConnect: onConnect}, "OnConnect cannot be called"},
		{redis.ClusterOptions{OnConnect: onConnect}, "OnConnect cannot be called"},
		{redis.FailoverOptions{OnConnect: onConnect}, "OnConnect cannot be called"},
		{redis.UniversalOptions{OnConnect: onConnect}, "OnConnect cannot be called"},
		{*failover.Options(), "pass its FailoverOptions"},
		{*both.Options(), "ClusterSlots"},
	} {
		_, err := convert(refused.settings)
		require.ErrorIs(t, err, latchkey.ErrInvalid, "%T", refused.settings)
		require.ErrorContains(t, err, refused.says, "%T", refused.settings)
	}
	client, err := latchkeygoredis.Open(within(t), failover.Options(), latchkey.Options{})
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.Nil(t, client)
}

// UniversalOptions are those of the client that go-redis makes of them, and stay as they are.
func TestUniversalOptions(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		settings redis.UniversalOptions
		same     any
	}{
		"one server": {redis.UniversalOptions{DB: 2}, redis.Options{Addr: "127.0.0.1:6379", DB: 2}},
		"a cluster": {
			redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}, DB: 2}, redis.ClusterOptions{Addrs: []string{"a:1", "b:2"}},
		},
		"one node of a cluster": {
			redis.UniversalOptions{Addrs: []string{"a:1"}, IsClusterMode: true, DB: 2},
			redis.ClusterOptions{Addrs: []string{"a:1"}},
		},
		"by Sentinel": {
			redis.UniversalOptions{MasterName: "main", DB: 2},
			redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"127.0.0.1:26379"}, DB: 2},
		},
		"by Sentinel, with replicas": {
			redis.UniversalOptions{MasterName: "main", Addrs: []string{"a:1"}, RouteRandomly: true, DB: 2},
			redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"a:1"}, DB: 2},
		},
	} {
		addrs := c.settings.Addrs
		got, err := latchkeygoredis.ClientOption(&c.settings)
		require.NoError(t, err, what)
		want, err := convert(c.same)
		require.NoError(t, err, what)
		assert.Equal(t, want, got, what)
		assert.Equal(t, addrs, c.settings.Addrs, what)
	}
}

// The connections of locks have a name of their own, those to Sentinels too, if the client has a
// name.
func TestConnectionNames(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", "orders": "orders-locks"} {
		option, err := latchkeygoredis.ClientOption(&redis.FailoverOptions{ClientName: given})
		require.NoError(t, err)
		assert.Equal(t, []string{want, want}, []string{option.ClientName, option.Sentinel.ClientName})
	}
}

// Sentinels get their own credentials and the TLS of the master, and never its credentials.
func TestSentinels(t *testing.T) {
	t.Parallel()
	secure := &redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: []string{"a:1", "b:2"}, SentinelUsername: "watcher", SentinelPassword: "one",
		Username: "app", Password: "two", TLSConfig: someTLS,
	}
	option, err := latchkeygoredis.ClientOption(secure)
	require.NoError(t, err)
	assert.Equal(t, rueidis.SentinelOption{
		MasterSet: "main", Username: "watcher", Password: "one", TLSConfig: someTLS,
	}, option.Sentinel)
	assert.Equal(t, []string{"a:1", "b:2"}, option.InitAddress)
	assert.Equal(t, "app two", option.Username+" "+option.Password)
	assert.Same(t, someTLS, option.TLSConfig)
}
