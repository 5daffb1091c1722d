package tests

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The functions up to the first test are also in docs/howto/go-redis.md: TestGoRedis_page compares them.

// locksOf returns the name of the lock connections of a client with that name.
func locksOf(name string) string {
	if name == "" {
		return ""
	}
	return name + "-locks"
}

// clientOption converts the settings of a go-redis client for Latchkey.
func clientOption(o *redis.Options) rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress: []string{cmp.Or(o.Addr, "localhost:6379")},
		Username:    o.Username,
		Password:    o.Password,
		SelectDB:    o.DB,
		ClientName:  locksOf(o.ClientName),
		TLSConfig:   o.TLSConfig,
		AlwaysRESP2: o.Protocol == 2,
		Dialer:      net.Dialer{Timeout: o.DialTimeout},
	}
	dial, network := o.Dialer, cmp.Or(o.Network, "tcp")
	if strings.HasPrefix(o.Addr, "/") {
		network = "unix"
	}
	if dial == nil && network != "tcp" {
		dial = redis.NewDialer(o)
	}
	if dial != nil { // it does everything, TLS included
		option.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dial(ctx, network, addr)
		}
	}
	if current := credentials(o); current != nil {
		option.Username, option.Password = "", ""
		option.AuthCredentialsFn = current
	}
	return option
}

// credentials returns the function that supplies the credentials of each connection, or nil if they never change.
func credentials(o *redis.Options) func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	switch {
	case o.StreamingCredentialsProvider != nil:
		return (&stream{provider: o.StreamingCredentialsProvider}).credentials
	case o.CredentialsProviderContext != nil:
		return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			username, password, err := o.CredentialsProviderContext(ctx)
			return rueidis.AuthCredentials{Username: username, Password: password}, err
		}
	case o.CredentialsProvider != nil:
		return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			username, password := o.CredentialsProvider()
			return rueidis.AuthCredentials{Username: username, Password: password}, nil
		}
	}
	return nil
}

// stream keeps the newest credentials of a provider that sends them.
type stream struct {
	provider auth.StreamingCredentialsProvider
	mu       sync.Mutex
	newest   auth.Credentials
}

func (s *stream) OnNext(c auth.Credentials) { s.mu.Lock(); defer s.mu.Unlock(); s.newest = c }
func (s *stream) OnError(error)             {} // the last ones stay in use

func (s *stream) credentials(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	s.mu.Lock()
	newest := s.newest
	s.mu.Unlock()
	if newest == nil {
		first, _, err := s.provider.Subscribe(s)
		if err != nil {
			return rueidis.AuthCredentials{}, err
		}
		s.mu.Lock()
		if s.newest == nil { // OnNext may have been called meanwhile
			s.newest = first
		}
		newest = s.newest
		s.mu.Unlock()
	}
	username, password := newest.BasicAuth()
	again := time.Now().Add(time.Minute) // an open connection then authenticates again, with the newest credentials
	return rueidis.AuthCredentials{Username: username, Password: password, RefreshAfter: again}, nil
}

// clusterOption is clientOption for a cluster.
func clusterOption(o *redis.ClusterOptions) rueidis.ClientOption {
	option := clientOption(&redis.Options{
		Username: o.Username, Password: o.Password, ClientName: o.ClientName, TLSConfig: o.TLSConfig,
		Protocol: o.Protocol, DialTimeout: o.DialTimeout, Dialer: o.Dialer,
		CredentialsProvider:          o.CredentialsProvider,
		CredentialsProviderContext:   o.CredentialsProviderContext,
		StreamingCredentialsProvider: o.StreamingCredentialsProvider,
	})
	option.InitAddress = o.Addrs
	return option
}

// failoverOption is clientOption for a master that Sentinels know.
func failoverOption(o *redis.FailoverOptions) (rueidis.ClientOption, error) {
	if o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil {
		return rueidis.ClientOption{}, errors.New("this would send the credentials of the master to the Sentinels")
	}
	option := clientOption(&redis.Options{
		Username: o.Username, Password: o.Password, DB: o.DB, ClientName: o.ClientName, TLSConfig: o.TLSConfig,
		Protocol: o.Protocol, DialTimeout: o.DialTimeout, Dialer: o.Dialer,
	})
	option.InitAddress = o.SentinelAddrs
	option.Sentinel = rueidis.SentinelOption{
		MasterSet: o.MasterName, Username: o.SentinelUsername, Password: o.SentinelPassword,
		ClientName: o.ClientName, TLSConfig: o.TLSConfig,
	}
	return option, nil
}

// setIfNewest writes ARGV[2] unless a larger token has written.
var setIfNewest = redis.NewScript(`
local last = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
if tonumber(ARGV[1]) < last then
  return 0
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return 1
`)

// fencedSet writes value under the lock, whose hold ctx carries. If a later holder has already written, it returns
// ErrLost.
func fencedSet(ctx context.Context, lock latchkey.Locker, data redis.Scripter, key, value string) error {
	written, err := setIfNewest.Run(ctx, data, []string{key}, lock.HoldFrom(ctx).Token(), value).Int()
	if err == nil && written == 0 {
		err = latchkey.ErrLost
	}
	return err
}

// goRedis opens a go-redis client of a server, with settings that a test changes. It also returns the settings with
// which to open Latchkey.
func goRedis(t *testing.T, server *rig.Server, change func(*redis.Options)) (redis.UniversalClient, rueidis.ClientOption) {
	t.Helper()
	if server.Embedded() {
		t.Skip("the embedded server must not be taken for a cluster")
	}
	at := rueidis.MustParseURL(server.URL())
	var o redis.Options
	change(&o)
	var client redis.UniversalClient
	var option rueidis.ClientOption
	switch {
	case server.Clustered():
		c := redis.ClusterOptions{Addrs: at.InitAddress, ClientName: o.ClientName, Protocol: o.Protocol, Dialer: o.Dialer}
		client, option = redis.NewClusterClient(&c), clusterOption(&c)
	case server.Watched():
		c := redis.FailoverOptions{SentinelAddrs: at.InitAddress, MasterName: at.Sentinel.MasterSet,
			DB: o.DB, ClientName: o.ClientName, Protocol: o.Protocol, Dialer: o.Dialer}
		client = redis.NewFailoverClient(&c)
		var err error
		option, err = failoverOption(&c)
		require.NoError(t, err)
	default:
		o.Addr = at.InitAddress[0]
		client, option = redis.NewClient(&o), clientOption(&o)
	}
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client, option
}

// seesAsOther checks that a go-redis client uses the server and the database in which a client of this library stores
// its locks.
func seesAsOther(t *testing.T, other redis.UniversalClient, client *latchkey.Client, name string) {
	t.Helper()
	hold := mustLock(t, client.NewMutex(name))
	value, err := other.Get(within(t, soon), name).Result()
	require.NoError(t, err)
	assert.Equal(t, hold.Owner().String(), value)
	mustUnlock(t, hold)
	assert.ErrorIs(t, other.Get(within(t, soon), name).Err(), redis.Nil)
}

// With settings converted by the functions of the page, Latchkey uses the same database of the same server as go-redis.
func TestGoRedis_settings(t *testing.T) {
	t.Parallel()
	var dialed atomic.Int32
	for what, change := range map[string]func(*redis.Options){
		"none":        func(*redis.Options) {},
		"a database":  func(o *redis.Options) { o.DB = 3 },
		"RESP2":       func(o *redis.Options) { o.Protocol = 2 },
		"a name":      func(o *redis.Options) { o.ClientName = "page" },
		"own dialing": func(o *redis.Options) { o.Dialer = counting(&dialed) },
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
				assert.Contains(t, rig.NewAdmin(t, server).Text("CLIENT", "LIST"), " name=page ")
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
	other, _ := goRedis(t, rig.Shared(), func(*redis.Options) {})
	client := open(t, clientOption(other.(*redis.Client).Options()), latchkey.Options{})
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
			client := open(t, clientOption(o), latchkey.Options{})
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

// The functions on the page are those of this file, and so are tested. Every setting of go-redis has a row.
func TestGoRedis_page(t *testing.T) {
	text, err := os.ReadFile("../docs/howto/go-redis.md")
	require.NoError(t, err)
	page := string(text)
	file, err := os.ReadFile("goredis_test.go")
	require.NoError(t, err)
	quoted := 0
	for _, block := range goBlock.FindAllStringSubmatch(page, -1) {
		if strings.Contains(block[1], "\nfunc ") {
			assert.Contains(t, string(file), block[1], "a block of the page is not in this file")
			quoted++
		}
	}
	assert.Equal(t, 2, quoted)
	rows := map[string]bool{}
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && strings.HasPrefix(line, "| ") {
			for _, word := range regexp.MustCompile("`([A-Za-z0-9]+)`").FindAllStringSubmatch(cells[1], -1) {
				rows[word[1]] = true
			}
		}
	}
	for _, settings := range []any{redis.Options{}, redis.ClusterOptions{}, redis.FailoverOptions{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(settings)) {
			if field.IsExported() {
				assert.True(t, rows[field.Name], "%T.%s has no row", settings, field.Name)
			}
		}
	}
}
