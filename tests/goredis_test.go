package tests

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
	"github.com/redis/rueidis/rueidiscompat"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The functions up to the first test stand in docs/go-redis.md: TestGoRedis_page holds both against each other.

// clientOption returns what Latchkey needs of the settings of a go-redis client.
func clientOption(o *redis.Options) rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress: []string{cmp.Or(o.Addr, "localhost:6379")},
		Username:    o.Username,
		Password:    o.Password,
		SelectDB:    o.DB,
		ClientName:  o.ClientName,
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

// credentials returns what is called for every connection, or nil if name and password do not change.
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
	again := time.Now().Add(time.Minute) // an open connection then authenticates with what is newest
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
		return rueidis.ClientOption{}, errors.New("the Sentinels would be given the credentials of the master")
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

// fencedSet writes under the fenced lock whose work has ctx. It fails for a holder that has lost the lock and does not
// know it yet, if the next holder has written.
func fencedSet(ctx context.Context, data redis.Scripter, key, value string) error {
	written, err := setIfNewest.Run(ctx, data, []string{key}, latchkey.HoldFrom(ctx).Token(), value).Int()
	if err == nil && written == 0 {
		err = latchkey.ErrLost
	}
	return err
}

// goRedis opens a go-redis client of a server, with settings of it that a test changes, and returns what Latchkey is to
// be opened with.
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

// sees checks that a client of go-redis looks at the server and the database in which a client of this library has its locks.
func sees(t *testing.T, other redis.UniversalClient, client *latchkey.Client, name string) {
	t.Helper()
	hold := mustLock(t, client.NewMutex(name))
	value, err := other.Get(within(t, soon), name).Result()
	require.NoError(t, err)
	assert.Equal(t, hold.Owner().String(), value)
	mustUnlock(t, hold)
	assert.ErrorIs(t, other.Get(within(t, soon), name).Err(), redis.Nil)
}

// With the settings that the functions of the page make of those of go-redis, both talk to the same database of the same
// server.
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
			sees(t, other, client, name)
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

// The settings that a go-redis client has completed can be converted too.
func TestGoRedis_settings_in_use(t *testing.T) {
	rig.Need(t, rig.Single)
	other, _ := goRedis(t, rig.Shared(), func(*redis.Options) {})
	client := open(t, clientOption(other.(*redis.Client).Options()), latchkey.Options{})
	sees(t, other, client, rig.Name(t))
}

// A certificate of the client serves both, and so does a socket in the file system.
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
			sees(t, other, client, rig.Name(t))
			require.NoError(t, client.Close(within(t, soon)))
		})
	}
}

// serveSocket puts a socket in the file system in front of a server.
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

// provider gives credentials that change, in every way that go-redis knows.
type provider struct {
	mu       sync.Mutex
	password string
	told     auth.CredentialsListener
	asked    int
}

func (p *provider) current() (username, password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return "locks", p.password
}

func (p *provider) withContext(context.Context) (username, password string, err error) {
	username, password = p.current()
	return username, password, nil
}

func (p *provider) Subscribe(to auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	username, password := p.current()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = to
	return auth.NewBasicCredentials(username, password), func() error { return nil }, nil
}

func (p *provider) change(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.password = password
	if p.told != nil {
		p.told.OnNext(auth.NewBasicCredentials("locks", password))
	}
}

// A password that changes is used for the next connection, whichever way go-redis is told of it. A hold lives on.
func TestGoRedis_credentials(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	rig.Need(t, rig.Single)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	ways := map[string]func(*redis.Options, *provider){
		"a provider": func(o *redis.Options, p *provider) { o.CredentialsProvider = p.current },
		"a provider with a context": func(o *redis.Options, p *provider) {
			o.CredentialsProviderContext = p.withContext
		},
		"a stream": func(o *redis.Options, p *provider) { o.StreamingCredentialsProvider = p },
		"a provider beside": func(o *redis.Options, p *provider) {
			o.CredentialsProvider, o.Username, o.Password = p.current, "old", "old"
		},
	}
	for what, set := range ways {
		t.Run(what, func(t *testing.T) {
			user := func(password string) {
				admin.Do("ACL", "SETUSER", "locks", "reset", "on", ">"+password, "~*", "&*", "+@all")
			}
			user("first")
			p, o := &provider{password: "first"}, &redis.Options{Addr: server.Addr()}
			set(o, p)
			client := open(t, clientOption(o), latchkey.Options{Lease: time.Minute})
			hold := mustLock(t, client.NewLock(rig.Name(t)))
			user("second")
			p.change("second")
			admin.Do("CLIENT", "KILL", "USER", "locks", "SKIPME", "yes")
			require.NoError(t, hold.Extend(within(t, soon), 2*time.Minute), "by a new connection")
			mustUnlock(t, hold)
		})
	}
	_, err := failoverOption(&redis.FailoverOptions{CredentialsProvider: new(provider).current})
	require.Error(t, err)
}

// Credentials that say when they are to be asked for again are, on an open connection.
func TestGoRedis_credentials_are_refreshed(t *testing.T) {
	rig.Need(t, rig.Single)
	var asked atomic.Int32
	option := rueidis.MustParseURL(rig.Shared().URL())
	option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		asked.Add(1)
		return rueidis.AuthCredentials{RefreshAfter: time.Now().Add(20 * time.Millisecond)}, nil
	}
	client := open(t, option, latchkey.Options{})
	hold := mustLock(t, client.NewLock(rig.Name(t)))
	before := asked.Load()
	rig.Eventually(t, soon, "they are asked for again", func() error {
		if asked.Load() < before+3 {
			return errors.New("not yet")
		}
		return nil
	})
	mustUnlock(t, hold)
}

// Latchkey adds one connection to those of go-redis, and one for messages while anybody waits, whatever the number of locks
// and goroutines.
func TestGoRedis_connections(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	rig.Need(t, rig.Single)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	o := &redis.Options{Addr: server.Addr(), PoolSize: 5, MinIdleConns: 5}
	other := redis.NewClient(o)
	defer func() { assert.NoError(t, other.Close()) }()
	option := clientOption(o)
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
	hold := mustLock(t, open(t, clientOption(o), latchkey.Options{}).NewMutex(name))
	var waiters sync.WaitGroup
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

// Work under a lock that is lost: a command of go-redis that has not been sent is not sent; one that waits for its answer
// goes on until the deadline of the context, if go-redis is to look at that, or its own.
func TestGoRedis_work_under_a_lost_lock(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	server, name := rig.Shared(), rig.Name(t)
	other, option := goRedis(t, server, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	lock := open(t, option, latchkey.Options{}).NewLock(name)
	hold := mustLock(t, lock, latchkey.Lease(300*time.Millisecond))
	ctx := hold.Context(t.Context())
	popped := make(chan error, 1)
	start := time.Now()
	go func() { popped <- other.BLPop(ctx, time.Second, name+":list").Err() }()
	<-hold.Lost()
	require.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
	err := other.Set(ctx, name+":data", "late", 0).Err()
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, latchkey.ErrLost, "go-redis tells Err, not Cause")
	assert.Zero(t, rig.NewAdmin(t, server).Int("EXISTS", name+":data"))
	require.ErrorIs(t, rig.Await(t, soon, "the command under way", popped), redis.Nil)
	assert.GreaterOrEqual(t, time.Since(start), time.Second, "it was not ended by the loss")
	require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
}

// Who has lost a fenced lock and does not know it cannot write behind the next holder.
func TestGoRedis_fencing(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	other, option := goRedis(t, server, func(*redis.Options) {})
	lock := open(t, option, latchkey.Options{}).NewFencedLock(name)
	first := mustLock(t, lock)
	late := first.Context(t.Context())
	require.NoError(t, fencedSet(late, other, name+":data", "first"))
	_, err := lock.ForceUnlock(within(t, soon))
	require.NoError(t, err)
	require.NoError(t, lock.Do(within(t, soon), func(ctx context.Context) error {
		return fencedSet(ctx, other, name+":data", "second")
	}))
	require.ErrorIs(t, fencedSet(context.WithoutCancel(late), other, name+":data", "late"), latchkey.ErrLost)
	value, err := other.HGet(within(t, soon), name+":data", "value").Result()
	require.NoError(t, err)
	assert.Equal(t, "second", value)
	_ = first.Unlock(t.Context())
}

// A user of its own keeps the application away from the keys of locks.
func TestGoRedis_users(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	rig.Need(t, rig.Single)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	admin.Do(append([]string{"ACL", "SETUSER", "latchkey"}, documentedACL(t, 0)...)...)
	admin.Do(strings.Fields("ACL SETUSER app reset resetchannels on >SECRET ~app:* &app:* +@all -@admin -@dangerous")...)
	client := open(t, clientOption(&redis.Options{Addr: server.Addr(), Username: "latchkey", Password: "SECRET"}),
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

// A key of a lock that an application removes: the holder is told at the next renewal. One that it turns into data is an
// error for everybody, and is left as it is.
func TestGoRedis_commands_on_a_lock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	other, option := goRedis(t, server, func(*redis.Options) {})
	lock := open(t, option, latchkey.Options{Lease: 600 * time.Millisecond, PollCeiling: 200 * time.Millisecond}).NewLock(name)
	hold := mustLock(t, lock)
	require.NoError(t, other.Del(within(t, soon), name).Err())
	rig.Await(t, soon, "the holder is told", hold.Lost())
	require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
	require.NoError(t, other.HSet(within(t, soon), name, "total", 7).Err())
	_, err := lock.Lock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	require.NoError(t, other.Del(within(t, soon), name).Err())
}

// Commands in the form of go-redis and locks share the connections of a rueidis client.
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

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// What the page shows as functions stands in this file, and so is tested; and every setting of go-redis has its row.
func TestGoRedis_page(t *testing.T) {
	text, err := os.ReadFile("../docs/go-redis.md")
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
