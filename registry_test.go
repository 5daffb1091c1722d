package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
)

// A call for an owner leaves nothing behind if it fails, whatever the reason is and whoever made the owner.
func TestRegistry_forgets_owners_of_failed_calls(t *testing.T) {
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	c, other := newClientOf(t, "redis://"+server.Addr(), Options{}), newClientOf(t, "redis://"+server.Addr(), Options{})
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
	calls := map[string]func(lock Locker, by Owner) (*Hold, error){
		"TryLock":             func(lock Locker, by Owner) (*Hold, error) { return lock.TryLock(ctx, By(by)) },
		"TryLock with a note": func(lock Locker, by Owner) (*Hold, error) { return lock.TryLock(ctx, By(by), Note("why")) },
		"Lock with a note": func(lock Locker, by Owner) (*Hold, error) {
			return lock.Lock(ctx, By(by), Note("why"), Wait(time.Millisecond))
		},
		"Lock":                   func(lock Locker, by Owner) (*Hold, error) { return lock.Lock(ctx, By(by), Wait(time.Millisecond)) },
		"a context that is over": func(lock Locker, by Owner) (*Hold, error) { return lock.Lock(canceled, By(by)) },
		"an owner on a context":  func(lock Locker, by Owner) (*Hold, error) { return lock.TryLock(WithOwner(ctx, by), Note("why")) },
		"a short lease":          func(lock Locker, by Owner) (*Hold, error) { return lock.TryLock(ctx, By(by), Lease(time.Nanosecond)) },
		"a maximum hold":         func(lock Locker, by Owner) (*Hold, error) { return lock.TryLock(ctx, By(by), MaxHold(time.Minute)) },
	}
	for kind, open := range locks {
		name := uniqueName(t, c) + kind
		h, err := open(other, name).Lock(ctx)
		require.NoError(t, err)
		foreign := uniqueName(t, c) + kind + " foreign"
		require.NoError(t, c.rueidis.Do(ctx, c.rueidis.B().Rpush().Key(foreign).Element("x").Build()).Error())
		for what, call := range calls {
			for whose, by := range map[string]Owner{"ours": c.NewOwner(), "theirs": other.NewOwner()} {
				for _, on := range []string{name, foreign} {
					got, err := call(open(c, on), by)
					if kind == "read" && on == name && err == nil {
						require.NoError(t, got.Unlock(ctx))
						continue
					}
					require.Error(t, err, "%s: %s, %s", kind, what, whose)
				}
			}
		}
		require.NoError(t, h.Unlock(ctx))
		require.Empty(t, c.registry.names, kind)
		require.Empty(t, c.registry.byName, kind)
	}
}
