package tests

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// redsyncing is a client of redsync.
func redsyncing(t *testing.T, server *rig.Server, name string) acquire {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	locks := redsync.New(goredis.NewPool(client))
	return func(ctx context.Context) (taken, error) {
		mu := locks.NewMutex(name, redsync.WithExpiry(recipeLease), redsync.WithTries(10_000))
		if err := mu.LockContext(ctx); err != nil {
			return taken{}, err
		}
		return taken{release: func(ctx context.Context) error {
			_, err := mu.UnlockContext(ctx)
			return err
		}}, nil
	}
}

const recipeLease = 30 * time.Second

// recipe is the plain lock that Redis documents, for one client: SET NX PX, a script that compares
// and deletes, and a pause between two tries. It neither sends nor receives messages.
type recipe struct {
	client *redis.Client
	name   string
	pause  func() time.Duration // between two tries
}

func (r recipe) acquire(ctx context.Context) (taken, error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	token := hex.EncodeToString(random)
	for {
		got, err := r.client.SetNX(ctx, r.name, token, recipeLease).Result()
		if err != nil {
			return taken{}, err
		}
		if got {
			return taken{release: func(ctx context.Context) error { return r.release(ctx, token) }}, nil
		}
		select {
		case <-ctx.Done():
			return taken{}, ctx.Err()
		case <-time.After(r.pause()):
		}
	}
}

var compareAndDelete = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end`)

func (r recipe) release(ctx context.Context, token string) error {
	n, err := compareAndDelete.Run(ctx, r.client, []string{r.name}, token).Int()
	if err == nil && n != 1 {
		err = errors.New("somebody else had the lock")
	}
	return err
}

// Goroutines of this library contend for a mutex with two processes of another one, which acquire
// it again right after each release: redsync, redis-py and node-redlock, each set up as its users
// do. Both sides go on. This library gets at least a third of an equal share of the passes, and so
// do the others if a pass takes longer than a few commands.
func TestMutexAmongStrangersGetsItsShare(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	for _, who := range []string{"redsync", "redis-py", "node-redlock"} {
		for _, hold := range []time.Duration{0, 20 * time.Millisecond} {
			for _, goroutines := range []int{1, 2} {
				if testing.Short() && (goroutines == 1 || hold == 0) {
					continue
				}
				if goroutines == 1 && who != "redsync" && os.Getenv("LATCHKEY_TEST_SHARES") == "" {
					continue // a process takes a second to start
				}
				t.Run(fmt.Sprintf("%d beside %s, hold %v", goroutines, who, hold), func(t *testing.T) {
					if testing.Short() {
						t.Parallel() // the shares do not count
					}
					mutexAmongStrangers(t, who, goroutines, hold)
				})
			}
		}
	}
}

func mutexAmongStrangers(t *testing.T, who string, goroutines int, hold time.Duration) {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	c := &contest{hold: hold, lasts: sharesFor(t, time.Second), both: true, dump: dumpOf(t, []*rig.Server{server}, name)}
	c.contenders = []contender{{name: "ours", goroutines: goroutines, acquire: locking(connect(t, server).NewMutex(name))}}
	c.pollers(t, server, name, who, 2)
	rig.NewAdmin(t, server).Do("SET", name, "a-token-of-another-library", "PX", "300") // all wait at first
	c.run(t)
	share, fair := c.share(0)
	t.Logf("share %.3f, equal shares are %.3f: %v", share, fair, c)
	rig.Target(t, share >= fair/3, "ours have %.3f of all passes, want a third of %.3f", share, fair)
	rig.Target(t, hold == 0 || 1-share >= (1-fair)/3, "the others have %.3f of all passes, want a third of %.3f", 1-share, 1-fair)
}

// Three goroutines pass a mutex to each other all the time. Another library, whose waiting nobody
// can detect, still finds it free now and then.
func TestMutexIsFreeNowAndThen(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	server, name := rig.Shared(), rig.Name(t)
	mutex := connect(t, server).NewMutex(name)
	busy := &contest{hold: time.Millisecond, lasts: time.Hour, dump: dumpOf(t, []*rig.Server{server}, name)}
	busy.contenders = []contender{{name: "ours", goroutines: 3, acquire: locking(mutex)}}
	ended := busy.begin(t.Context())
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { assert.NoError(t, client.Close()) }()
	other := recipe{client, name, func() time.Duration { return time.Millisecond }}
	for range 3 {
		passes := busy.total.Load()
		rig.Eventually(t, soon, "ours pass the mutex on", func() error {
			if busy.total.Load() < passes+10 {
				return errors.New("not yet")
			}
			return nil
		})
		got, err := other.acquire(within(t, 3*soon))
		require.NoError(t, err)
		require.NoError(t, got.release(t.Context()))
	}
	busy.finished.Store(true)
	require.NoError(t, <-ended)
}

// A waiter polls often while a mutex changes hands among others, and seldom while one of them keeps
// it.
func TestMutexWaiterPollsOftenWhileStrangersChange(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Single)
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	mutex := connectVia(t, server, tap.Addr()).NewMutex(name)
	admin := rig.NewAdmin(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gaveUp := make(chan error, 1)
	set := func(token string) { admin.Do("SET", name, token, "PX", "600000") }
	set("a-token-of-another-library")
	go func() {
		_, err := mutex.Lock(ctx)
		gaveUp <- err
	}()
	asked := func(lasts time.Duration, change bool) float64 {
		tap.Forget()
		start := time.Now()
		for i := 0; time.Since(start) < lasts; i++ {
			if change {
				set(fmt.Sprint("token-of-another-library-", i))
			}
			rest(2 * time.Millisecond)
		}
		return float64(len(tap.Commands())) / time.Since(start).Seconds()
	}
	kept := asked(time.Second, false)
	changing := asked(time.Second, true)
	after := asked(2*time.Second, false)
	t.Logf("%.0f commands a second, %.0f while it changes hands, %.0f after that", kept, changing, after)
	assert.Less(t, kept, 25.0, "with those that begin the wait")
	assert.Less(t, changing, 201.0)
	rig.Target(t, changing > 20, "%.0f commands a second while it changes hands", changing)
	assert.Less(t, after, 25.0)
	cancel()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
}
