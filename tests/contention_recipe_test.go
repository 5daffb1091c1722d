package tests

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// otherLibraries are clients of other libraries with the recipe that Redis documents: SET NX PX,
// a script that compares and deletes, and between two tries a pause. Nobody tells them or
// is told by them. redsync is itself; for those in other languages stands the recipe with
// their commands and their default pauses.
var otherLibraries = map[string]func(client *redis.Client, name string) acquire{
	"redsync": redsyncing,
	"redis-py": func(client *redis.Client, name string) acquire {
		return recipe{client, name, func() time.Duration { return 100 * time.Millisecond }}.acquire
	},
	"node-redlock": func(client *redis.Client, name string) acquire {
		return recipe{client, name, func() time.Duration {
			return 200*time.Millisecond + time.Duration((2*mathrand.Float64()-1)*float64(100*time.Millisecond))
		}}.acquire
	},
}

func redsyncing(client *redis.Client, name string) acquire {
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

// recipe is the plain lock for one client.
type recipe struct {
	client *redis.Client
	name   string
	pause  func() time.Duration // between two tries
}

func (r recipe) acquire(ctx context.Context) (taken, error) {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // which never fails
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

// Two goroutines of this library want a mutex, and so do two processes of another, which
// take it again as soon as they have released it. Ours get a third of an equal share, at
// least.
func TestMutexAmongStrangersGetsItsShare(t *testing.T) {
	rig.Need(t, rig.Single)
	for who, open := range otherLibraries {
		for _, hold := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, hold %v", who, hold), func(t *testing.T) {
				server, name := rig.Shared(), rig.Name(t)
				c := &contest{hold: hold, lasts: sharesFor(t, 2*time.Second), dump: dumpOf(t, []*rig.Server{server}, name)}
				c.parties = append(c.parties, party{"ours", 2, locking(connect(t, server).NewMutex(name))})
				for range 2 {
					client := redis.NewClient(&redis.Options{Addr: server.Addr()})
					t.Cleanup(func() { assert.NoError(t, client.Close()) })
					c.parties = append(c.parties, party{who, 1, open(client, name)})
				}
				c.run(t)
				share, fair := c.share(0)
				t.Logf("share %.3f, equal shares are %.3f: %v", share, fair, c)
				rig.Target(t, share >= fair/3, "ours have %.3f of all passes, want a third of %.3f", share, fair)
			})
		}
	}
}
