package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

const (
	// soon is long enough for anything that should happen at once, also on a busy machine. It is
	// shorter than the default lease, so that a lock that is free soon was released.
	soon = 20 * time.Second
	// leeway is what a busy machine may add to a measured time.
	leeway = 5 * time.Second
)

// kind is one of the locks, for tests of what all locks have in common.
type kind struct {
	name      string
	open      func(client *latchkey.Client, name string) anyLock
	reentrant bool
	fenced    bool
	messages  bool // waiters are woken by messages
	sided     bool // a side of a read/write lock
	queued    bool // waiters have a queue in Redis
}

var (
	mutexKind = kind{
		name: "Mutex", messages: true,
		open: func(c *latchkey.Client, name string) anyLock { return c.NewMutex(name) },
	}
	lockKind = kind{
		name: "Lock", reentrant: true, messages: true,
		open: func(c *latchkey.Client, name string) anyLock { return c.NewLock(name) },
	}
	fencedKind = kind{
		name: "FencedLock", reentrant: true, fenced: true, messages: true,
		open: func(c *latchkey.Client, name string) anyLock { return c.NewFencedLock(name) },
	}
	spinKind = kind{
		name: "SpinLock", reentrant: true,
		open: func(c *latchkey.Client, name string) anyLock { return c.NewSpinLock(name, latchkey.Backoff{}) },
	}
	fairKind = kind{
		name: "FairLock", reentrant: true, messages: true, queued: true,
		open: func(c *latchkey.Client, name string) anyLock { return c.NewFairLock(name) },
	}
	writeKind = kind{
		name: "WriteLock", reentrant: true, messages: true, sided: true,
		open: func(c *latchkey.Client, name string) anyLock { return c.NewRWLock(name).Writer() },
	}
	// readKind does not exclude, so few of the tests of all kinds use it.
	readKind = kind{
		name: "ReadLock", reentrant: true, messages: true, sided: true,
		open: func(c *latchkey.Client, name string) anyLock { return c.NewRWLock(name).Reader() },
	}
	kinds = []kind{mutexKind, lockKind, fencedKind, spinKind, fairKind, writeKind}
)

func kindNamed(name string) (kind, error) {
	for _, k := range append(kinds, readKind) {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("no kind of lock is called %q", name)
}

// eachKind runs a test for every kind of lock that all the filters accept.
func eachKind(t *testing.T, test func(t *testing.T, k kind), filters ...func(kind) bool) {
	t.Helper()
	for _, k := range kinds {
		if accepted(k, filters) {
			t.Run(k.name, func(t *testing.T) { test(t, k) })
		}
	}
}

func accepted(k kind, filters []func(kind) bool) bool {
	for _, filter := range filters {
		if !filter(k) {
			return false
		}
	}
	return true
}

func reentrant(k kind) bool { return k.reentrant }
func messages(k kind) bool  { return k.messages }
func guests(k kind) bool    { return !k.sided } // Redisson's format has no room for them

// dial opens a client of the library through addr: the server's own address or that of a proxy. The
// embedded server must not be mistaken for a cluster, so there the library borrows a client that
// knows this. closeAll closes both.
func dial(server *rig.Server, addr string, options latchkey.Options) (client *latchkey.Client, closeAll func(context.Context) error, err error) {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Label == "" {
		options.Label = latchkey.NoLabel // its commands come at any time, and many tests count commands
	}
	if options.RetryBudget == 0 { // the default is too short for a busy machine
		options.RetryBudget = min(soon/2, cmp.Or(options.Lease, defaultLease))
	}
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if !server.Embedded() {
		options = routed(server, addr, options)
		client, err = latchkey.Connect(ctx, server.URLVia(addr), options)
		for errors.Is(err, latchkey.ErrUnavailable) && ctx.Err() == nil && options.RetryBudget < soon/2 { // as short as the lease
			client, err = latchkey.Connect(ctx, server.URLVia(addr), options)
		}
		if err != nil {
			return nil, nil, err
		}
		return client, client.Close, nil
	}
	return borrow(likeOurs(server.Options(addr)), options)
}

// dialTicket is dial for a child process that has the ticket of a server. Without an addr it uses
// the server's own.
func dialTicket(ticket, addr string, options latchkey.Options) (client *latchkey.Client, closeAll func(context.Context) error, err error) {
	server, err := rig.Attach(ticket)
	if err != nil {
		return nil, nil, err
	}
	return dialPatiently(server, cmp.Or(addr, server.Addr()), options)
}

// dialPatiently is dial for a server that is there, on a machine that may be too busy for one try.
func dialPatiently(server *rig.Server, addr string, options latchkey.Options) (client *latchkey.Client, closeAll func(context.Context) error, err error) {
	for range 4 {
		if client, closeAll, err = dial(server, addr, options); !errors.Is(err, latchkey.ErrUnavailable) {
			break
		}
	}
	return client, closeAll, err
}

// notInCluster skips a test of something that clusters do not have.
func notInCluster(t *testing.T, why string) {
	t.Helper()
	if rig.Shared().Clustered() {
		t.Skip("in a cluster: " + why)
	}
}

// routed makes a client of the library use addr if it learns the addresses of the servers from
// others.
func routed(server *rig.Server, addr string, options latchkey.Options) latchkey.Options {
	route, own := server.Route(addr), options.Tuning.AddressMapper
	switch {
	case route == nil:
	case own == nil:
		options.Tuning.AddressMapper = route
	default:
		options.Tuning.AddressMapper = func(address string) string { return route(own(address)) }
	}
	return options
}

// likeOurs gives a borrowed client the settings of the library's own clients.
func likeOurs(option rueidis.ClientOption) rueidis.ClientOption {
	option.Dialer.KeepAlive = time.Second
	option.ConnWriteTimeout = 2 * time.Second
	option.PipelineMultiplex = -1
	option.AlwaysPipelining = true
	return option
}

// borrow makes the library use a rueidis client with settings of the test.
func borrow(option rueidis.ClientOption, options latchkey.Options) (*latchkey.Client, func(context.Context) error, error) {
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return nil, nil, err
	}
	client, err := latchkey.New(redis, options)
	if err != nil {
		redis.Close()
		return nil, nil, err
	}
	return client, func(ctx context.Context) error {
		defer redis.Close()
		return client.Close(ctx)
	}, nil
}

// connectVia is dial, but closes the client at the end of the test. Close may fail, because many
// tests end with a broken link, but it must return.
func connectVia(t testing.TB, server *rig.Server, addr string, options ...latchkey.Options) *latchkey.Client {
	t.Helper()
	client, closeAll, err := dialPatiently(server, addr, append(options, latchkey.Options{})[0])
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = closeAll(ctx)
	})
	return client
}

// connect opens a client of the library that is closed at the end of the test.
func connect(t testing.TB, server *rig.Server, options ...latchkey.Options) *latchkey.Client {
	t.Helper()
	return connectVia(t, server, server.Addr(), options...)
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func mustLock(t testing.TB, lock latchkey.Locker, options ...latchkey.LockOption) *latchkey.Hold {
	t.Helper()
	hold, err := lock.Lock(within(t, soon), options...)
	require.NoError(t, err)
	return hold
}

func mustUnlock(t testing.TB, hold *latchkey.Hold) {
	t.Helper()
	require.NoError(t, hold.Unlock(context.Background()))
}

// acquisition is the outcome of an acquisition in another goroutine.
type acquisition struct {
	hold *latchkey.Hold
	err  error
	at   time.Time // when the call returned
}

// lockInBackground acquires in another goroutine.
func lockInBackground(ctx context.Context, lock latchkey.Locker, options ...latchkey.LockOption) <-chan acquisition {
	done := make(chan acquisition, 1)
	go func() {
		hold, err := lock.Lock(ctx, options...)
		done <- acquisition{hold, err, time.Now()}
	}()
	return done
}

// free returns nil when no key contains the name, except for fencing counters, which stay for ever.
func free(admin *rig.Admin, name string) func() error {
	return func() error {
		for _, key := range admin.KeysOf(name) {
			if !strings.HasPrefix(key, "redisson_lock_token:") {
				return fmt.Errorf("key %s: %v", key, admin.Dump(name)[key])
			}
		}
		return nil
	}
}

func tokenKey(name string) string  { return "redisson_lock_token:{" + name + "}" }
func channelOf(name string) string { return "redisson_lock__channel:{" + name + "}" }

// channelOf returns the channel on which releases of the lock are published, or the prefix of each
// waiter's channel.
func (k kind) channelOf(name string) string {
	if k.sided {
		return "redisson_rwlock:{" + name + "}"
	}
	return channelOf(name)
}

// countInRedis returns the hold count that the server has for the lock's only owner: 0 for a free
// lock, 1 for a mutex.
func countInRedis(t testing.TB, admin *rig.Admin, name string) int64 {
	t.Helper()
	switch admin.Text("TYPE", name) {
	case "none":
		return 0
	case "string":
		return 1
	}
	counts := slices.DeleteFunc(admin.Strings("HVALS", name), func(v string) bool { return v == "read" || v == "write" })
	if len(counts) == 0 {
		return 0 // it was removed between the two queries
	}
	require.Len(t, counts, 1, "one owner")
	var n int64
	_, err := fmt.Sscan(counts[0], &n)
	require.NoError(t, err)
	return n
}

// mentioning returns the commands through a tap that mention a name.
func mentioning(tap *rig.Tap, name string) (found []rig.Command) {
	for _, c := range tap.Commands() {
		if rig.Mentions(name)(c) {
			found = append(found, c)
		}
	}
	return found
}

// eachName calls f for n names, in the given number of goroutines.
func eachName(t testing.TB, n, goroutines int, f func(name string)) {
	t.Helper()
	names := make(chan string)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for name := range names {
				f(name)
			}
		})
	}
	for i := range n {
		names <- fmt.Sprintf("name-%d", i)
	}
	close(names)
	all.Wait()
}

// subscribeRaw listens to a channel of locks with a plain client.
func subscribeRaw(t testing.TB, server *rig.Server, channel string) <-chan string {
	t.Helper()
	client := server.Raw(t)
	link, release := client.Dedicate()
	heard := make(chan string, 100)
	link.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { heard <- m.Message }})
	t.Cleanup(func() { link.Close(); release() })
	require.NoError(t, link.Do(context.Background(), server.Subscribe(client, channel)).Error())
	return heard
}

// listenRaw listens to a channel until the test ends, and calls do for each message.
func listenRaw(t testing.TB, server *rig.Server, channel string, do func()) {
	t.Helper()
	heard := subscribeRaw(t, server, channel)
	go func() {
		for {
			select {
			case <-heard:
				do()
			case <-t.Context().Done():
				return
			}
		}
	}()
}

// anyLock is what all locks have in common.
type anyLock interface {
	latchkey.Locker
	Inspect(ctx context.Context) (latchkey.Object, error)
	ForceUnlock(ctx context.Context) (bool, error)
}
