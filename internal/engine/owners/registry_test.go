package owners_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// call calls a method of a lock.
type call = func(latchkey.Locker) (*latchkey.Hold, error)

// A call for an owner leaves nothing behind if it fails, whatever the reason is and whoever made
// the owner.
func TestRegistry_forgets_owners_of_failed_calls(t *testing.T) {
	url := testredis.Run(t).URL()
	engine := testredis.NewEngineOf(t, url)
	c, other := (*latchkey.Client)(engine.Handle), (*latchkey.Client)(testredis.NewEngineOf(t, url).Handle)
	ctx := context.Background()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	locks := map[string]func(c *latchkey.Client, name string) latchkey.Locker{
		"lock":   func(c *latchkey.Client, name string) latchkey.Locker { return c.NewLock(name) },
		"fenced": func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFencedLock(name) },
		"spin":   func(c *latchkey.Client, name string) latchkey.Locker { return c.NewSpinLock(name, latchkey.Backoff{}) },
		"fair":   func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFairLock(name) },
		"mutex":  func(c *latchkey.Client, name string) latchkey.Locker { return c.NewMutex(name) },
		"read":   func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Reader() },
		"write":  func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Writer() },
	}
	try := func(by latchkey.Owner, options ...latchkey.TryLockOption) call {
		return func(lock latchkey.Locker) (*latchkey.Hold, error) {
			return lock.TryLock(ctx, append(options, latchkey.As(by))...)
		}
	}
	wait := func(ctx context.Context, by latchkey.Owner, options ...latchkey.LockOption) call {
		return func(lock latchkey.Locker) (*latchkey.Hold, error) {
			return lock.Lock(ctx, append(options, latchkey.As(by), latchkey.Wait(time.Millisecond))...)
		}
	}
	calls := map[string]func(by latchkey.Owner) call{
		"TryLock":                func(by latchkey.Owner) call { return try(by) },
		"TryLock with a note":    func(by latchkey.Owner) call { return try(by, latchkey.Note("why")) },
		"a short lease":          func(by latchkey.Owner) call { return try(by, latchkey.Lease(time.Nanosecond)) },
		"a maximum hold":         func(by latchkey.Owner) call { return try(by, latchkey.MaxHold(time.Minute)) },
		"Lock":                   func(by latchkey.Owner) call { return wait(ctx, by) },
		"Lock with a note":       func(by latchkey.Owner) call { return wait(ctx, by, latchkey.Note("why")) },
		"a context that is over": func(by latchkey.Owner) call { return wait(canceled, by) },
		"an owner on a context": func(by latchkey.Owner) call {
			return func(lock latchkey.Locker) (*latchkey.Hold, error) {
				return lock.TryLock(latchkey.WithOwner(ctx, by), latchkey.Note("why"))
			}
		},
	}
	for kind, open := range locks {
		name := testredis.UniqueName(t, engine) + kind
		h, err := open(other, name).Lock(ctx)
		require.NoError(t, err)
		foreign := testredis.UniqueName(t, engine) + kind + " foreign"
		require.NoError(t, engine.Rueidis.Do(ctx, engine.Rueidis.B().Rpush().Key(foreign).Element("x").Build()).Error())
		for what, call := range calls {
			for whose, by := range map[string]latchkey.Owner{"ours": c.NewOwner(), "theirs": other.NewOwner()} {
				for _, on := range []string{name, foreign} {
					got, err := call(by)(open(c, on))
					if kind == "read" && on == name && err == nil {
						require.NoError(t, got.Unlock(ctx))
						continue
					}
					require.Error(t, err, "%s: %s, %s", kind, what, whose)
				}
			}
		}
		require.NoError(t, h.Unlock(ctx))
		require.Empty(t, owners.Of(engine).Names, kind)
		require.Empty(t, owners.Of(engine).ByName, kind)
	}
}
