package tests

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeygoredis"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// setIfNewest and fencedSet are also in docs/howto/go-redis.md: TestGoRedis_page compares them.

// setIfNewest writes ARGV[2] unless a larger token has written.
var setIfNewest = redis.NewScript(`
local last = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
if tonumber(ARGV[1]) < last then
  return 0
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return 1
`)

// fencedSet writes value under the lock, whose hold ctx carries. If a later holder has already
// written, it returns ErrLost.
func fencedSet(ctx context.Context, lock latchkey.Locker, data redis.Scripter, key, value string) error {
	written, err := setIfNewest.Run(ctx, data, []string{key}, lock.HoldFrom(ctx).Token(), value).Int()
	if err == nil && written == 0 {
		err = latchkey.ErrLost
	}
	return err
}

// goRedis opens a go-redis client of a server of any kind, with settings that a test changes. It
// also returns the settings with which to open Latchkey.
func goRedis(
	t *testing.T, server *rig.Server, change func(*redis.UniversalOptions),
) (redis.UniversalClient, rueidis.ClientOption) {
	t.Helper()
	if server.Embedded() {
		t.Skip("the embedded server must not be taken for a cluster")
	}
	at := rueidis.MustParseURL(server.URL())
	o := &redis.UniversalOptions{
		Addrs: at.InitAddress, MasterName: at.Sentinel.MasterSet, IsClusterMode: server.Clustered(),
	}
	change(o)
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client, converted(t, o)
}

// converted returns settings of go-redis as Latchkey needs them.
func converted[S latchkeygoredis.Settings](t *testing.T, settings S) rueidis.ClientOption {
	t.Helper()
	option, err := latchkeygoredis.ClientOption(settings)
	require.NoError(t, err)
	return option
}

// seesAsOther checks that a go-redis client uses the server and the database in which a client of
// this library stores its locks.
func seesAsOther(t *testing.T, other redis.UniversalClient, client *latchkey.Client, name string) {
	t.Helper()
	hold := mustLock(t, client.NewMutex(name))
	value, err := other.Get(within(t, soon), name).Result()
	require.NoError(t, err)
	assert.Equal(t, hold.Owner().String(), value)
	mustUnlock(t, hold)
	assert.ErrorIs(t, other.Get(within(t, soon), name).Err(), redis.Nil)
}

// With settings converted by latchkeygoredis, Latchkey uses the same database of the same server as
// go-redis.
func TestGoRedis_settings(t *testing.T) {
	t.Parallel()
	var dialed atomic.Int32
	for what, change := range map[string]func(*redis.UniversalOptions){
		"none":        func(*redis.UniversalOptions) {},
		"a database":  func(o *redis.UniversalOptions) { o.DB = 3 },
		"RESP2":       func(o *redis.UniversalOptions) { o.Protocol = 2 },
		"a name":      func(o *redis.UniversalOptions) { o.ClientName = "page" },
		"own dialing": func(o *redis.UniversalOptions) { o.Dialer = counting(&dialed) },
	} {
		t.Run(what, func(t *testing.T) {
			server, name := rig.Shared(), rig.Name(t)
			other, option := goRedis(t, server, change)
			client := open(t, option, latchkey.Options{})
			before := dialed.Load()
			if what == "own dialing" {
				require.Positive(t, before, "Open has not dialed by it")
			}
			seesAsOther(t, other, client, name)
			if what == "a name" && !server.Clustered() {
				list := rig.NewAdmin(t, server).Text("CLIENT", "LIST")
				assert.Contains(t, list, " name=page ")
				assert.Contains(t, list, " name=page-locks ")
			}
		})
	}
}

func counting(dialed *atomic.Int32) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialed.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
}

// The settings of an existing go-redis client, which has added its defaults, can be converted too.
func TestGoRedis_settings_in_use(t *testing.T) {
	rig.Need(t, rig.Single)
	other, _ := goRedis(t, rig.Shared(), func(*redis.UniversalOptions) {})
	client := open(t, converted(t, other.(*redis.Client).Options()), latchkey.Options{})
	seesAsOther(t, other, client, rig.Name(t))
}

// TLS with a client certificate works for both clients, and so does a Unix socket.
func TestGoRedis_links(t *testing.T) {
	rig.Need(t, rig.Single)
	server, authority := rig.Shared(), newAuthority(t)
	socket := filepath.Join(t.TempDir(), "redis.sock")
	serveSocket(t, server, socket)
	for what, o := range map[string]*redis.Options{
		"TLS": {Addr: serveTLS(t, server, authority), TLSConfig: &tls.Config{
			RootCAs: authority.pool, Certificates: []tls.Certificate{authority.issue(t)},
		}},
		"a socket":                {Addr: socket},
		"a socket with a network": {Network: "unix", Addr: socket},
	} {
		t.Run(what, func(t *testing.T) {
			other := redis.NewClient(o)
			defer func() { assert.NoError(t, other.Close()) }()
			client := open(t, converted(t, o), latchkey.Options{})
			seesAsOther(t, other, client, rig.Name(t))
			require.NoError(t, client.Close(within(t, soon)))
		})
	}
}

// serveSocket opens a Unix socket that leads to a server.
func serveSocket(t *testing.T, server *rig.Server, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server.Addr())
			if err != nil {
				_ = client.Close()
				return
			}
			go func() { _, _ = io.Copy(upstream, client); _ = upstream.Close() }()
			go func() { _, _ = io.Copy(client, upstream); _ = client.Close() }()
		}
	}()
}

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// The functions on the page are those of this file, and so are tested. The module latchkeygoredis
// tests that every setting of go-redis is converted, refused or ignored.
func TestGoRedis_page(t *testing.T) {
	page, err := os.ReadFile("../docs/howto/go-redis.md")
	require.NoError(t, err)
	file, err := os.ReadFile("goredis_test.go")
	require.NoError(t, err)
	quoted := 0
	for _, block := range goBlock.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "\nfunc ") {
			assert.Contains(t, string(file), block[1], "a block of the page is not in this file")
			quoted++
		}
	}
	assert.Equal(t, 1, quoted)
}
