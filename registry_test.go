package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/testredis"
)

// A call for an owner leaves nothing behind if it fails, whatever the reason is and whoever made the owner.
func TestRegistry_forgets_owners_of_failed_calls(t *testing.T) {
	url := testredis.Run(t).URL()
	c, other := newClientOf(t, url, Options{}), newClientOf(t, url, Options{})
	ctx := context.Background()
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	locks := map[string]func(c *Client, name string) Locker{
		"lock":   func(c *Client, name string) Locker { return c.NewLock(name) },
		"fenced": func(c *Client, name string) Locker { return c.NewFencedLock(name) },
		"spin":   func(c *Client, name string) Locker { return c.NewSpinLock(name, Backoff{}) },
		"fair":   func(c *Client, name string) Locker { return c.NewFairLock(name) },
		"mutex":  func(c *Client, name string) Locker { return c.NewMutex(name) },
		"read":   func(c *Client, name string) Locker { return c.NewRWLock(name).Reader() },
		"write":  func(c *Client, name string) Locker { return c.NewRWLock(name).Writer() },
	}
	try := func(by Owner, options ...TryLockOption) func(Locker) (*Hold, error) {
		return func(lock Locker) (*Hold, error) { return lock.TryLock(ctx, append(options, As(by))...) }
	}
	wait := func(ctx context.Context, by Owner, options ...LockOption) func(Locker) (*Hold, error) {
		return func(lock Locker) (*Hold, error) {
			return lock.Lock(ctx, append(options, As(by), Wait(time.Millisecond))...)
		}
	}
	calls := map[string]func(by Owner) func(Locker) (*Hold, error){
		"TryLock":                func(by Owner) func(Locker) (*Hold, error) { return try(by) },
		"TryLock with a note":    func(by Owner) func(Locker) (*Hold, error) { return try(by, Note("why")) },
		"a short lease":          func(by Owner) func(Locker) (*Hold, error) { return try(by, Lease(time.Nanosecond)) },
		"a maximum hold":         func(by Owner) func(Locker) (*Hold, error) { return try(by, MaxHold(time.Minute)) },
		"Lock":                   func(by Owner) func(Locker) (*Hold, error) { return wait(ctx, by) },
		"Lock with a note":       func(by Owner) func(Locker) (*Hold, error) { return wait(ctx, by, Note("why")) },
		"a context that is over": func(by Owner) func(Locker) (*Hold, error) { return wait(canceled, by) },
		"an owner on a context": func(by Owner) func(Locker) (*Hold, error) {
			return func(lock Locker) (*Hold, error) { return lock.TryLock(WithOwner(ctx, by), Note("why")) }
		},
	}
	for kind, open := range locks {
		name := uniqueName(t, c) + kind
		h, err := open(other, name).Lock(ctx)
		require.NoError(t, err)
		foreign := uniqueName(t, c) + kind + " foreign"
		require.NoError(t, c.engine().Rueidis.Do(ctx, c.engine().Rueidis.B().Rpush().Key(foreign).Element("x").Build()).Error())
		for what, call := range calls {
			for whose, by := range map[string]Owner{"ours": c.NewOwner(), "theirs": other.NewOwner()} {
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
		require.Empty(t, c.engine().Registry.Names, kind)
		require.Empty(t, c.engine().Registry.ByName, kind)
	}
}
