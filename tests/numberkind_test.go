package tests

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Semaphores, permit semaphores and latches are numbers in Redis. A key of this library beside the
// number says which of them it is, and ends with the object.

func kindKeyOf(name string) string { return "latchkey_op:{" + name + "}:kind" }

// numbers make a number of each kind, and check that it can be used.
var numbers = map[string]func(t *testing.T, c *latchkey.Client, name string){
	"semaphore": func(t *testing.T, c *latchkey.Client, name string) {
		t.Helper()
		set, err := c.NewSemaphore(name).TrySetPermits(t.Context(), 2)
		require.NoError(t, err)
		require.True(t, set)
		require.NoError(t, c.NewSemaphore(name).Acquire(t.Context()))
	},
	"permit semaphore": func(t *testing.T, c *latchkey.Client, name string) {
		t.Helper()
		set, err := c.NewPermitSemaphore(name).TrySetPermits(t.Context(), 2)
		require.NoError(t, err)
		require.True(t, set)
		require.NoError(t, firstOf(c.NewFairSemaphore(name).Acquire(t.Context())))
	},
	"latch": func(t *testing.T, c *latchkey.Client, name string) {
		t.Helper()
		set, err := c.NewCountDownLatch(name).TrySetCount(t.Context(), 2)
		require.NoError(t, err)
		require.True(t, set)
		require.NoError(t, firstOf(c.NewCountDownLatch(name).CountDown(t.Context())))
	},
}

// ends ends an object of each kind, by the name of the kind: as a client of this library would, by
// time, and as Redisson would.
var ends = map[string]func(t *testing.T, admin *rig.Admin, c *latchkey.Client, kind, name string){
	"deleted": func(t *testing.T, _ *rig.Admin, c *latchkey.Client, kind, name string) {
		t.Helper()
		ended, err := map[string]func() (bool, error){
			"semaphore":        func() (bool, error) { return c.NewSemaphore(name).Delete(t.Context()) },
			"permit semaphore": func() (bool, error) { return c.NewFairSemaphore(name).Delete(t.Context()) },
			"latch":            func() (bool, error) { return c.NewCountDownLatch(name).Delete(t.Context()) },
		}[kind]()
		require.NoError(t, err)
		require.True(t, ended)
	},
	"expired": func(t *testing.T, admin *rig.Admin, c *latchkey.Client, kind, name string) {
		t.Helper()
		switch kind {
		case "semaphore":
			require.NoError(t, firstOf(c.NewSemaphore(name).SetTTL(t.Context(), time.Millisecond)))
		case "permit semaphore":
			require.NoError(t, firstOf(c.NewPermitSemaphore(name).SetTTL(t.Context(), time.Millisecond)))
		default:
			require.NoError(t, firstOf(c.NewCountDownLatch(name).Delete(t.Context())))
			require.NoError(t, firstOf(c.NewCountDownLatch(name).TrySetCount(t.Context(), 1, latchkey.TTL(time.Millisecond))))
		}
		gone(t, admin, name)
		gone(t, admin, kindKeyOf(name))
	},
	"deleted by Redisson": func(t *testing.T, admin *rig.Admin, _ *latchkey.Client, _, name string) {
		t.Helper()
		admin.Do("DEL", name)
		admin.Do("DEL", idsOf(name))
	},
}

func gone(t *testing.T, admin *rig.Admin, key string) {
	t.Helper()
	rig.Eventually(t, soon, key+" is gone", func() error {
		if admin.Exists(key) {
			return errors.New("it is there")
		}
		return nil
	})
}

// When an object has ended, its name can be used for any other kind.
func TestNumberKinds_name_is_free_again(t *testing.T) {
	t.Parallel()
	for end, endIt := range ends {
		for first, makeOne := range numbers {
			if first == "latch" && end == "deleted by Redisson" {
				continue // it opened: Redisson deletes the number then
			}
			for second, makeAnother := range numbers {
				t.Run(first+" "+end+", then "+second, func(t *testing.T) {
					t.Parallel()
					server, name := rig.Shared(), rig.Name(t)
					admin, client := rig.NewAdmin(t, server), connect(t, server)
					makeOne(t, client, name)
					assert.Equal(t, first, admin.Text("GET", kindKeyOf(name)))
					endIt(t, admin, client, first, name)
					makeAnother(t, client, name)
					assert.Equal(t, second, admin.Text("GET", kindKeyOf(name)))
				})
			}
		}
	}
}

// The key has the same expiry as the object, or none.
func TestNumberKinds_expiry(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	name := rig.Name(t)
	s, p, l := client.NewSemaphore(name+"s"), client.NewPermitSemaphore(name+"p"), client.NewCountDownLatch(name+"l")
	same := func(what, name string, want time.Duration) {
		t.Helper()
		got := admin.PTTL(kindKeyOf(name))
		if want == latchkey.NoExpiry {
			assert.Equal(t, admin.PTTL(name), got, what)
			return
		}
		assert.InDelta(t, want, got, float64(leeway+soon), what)
	}
	require.NoError(t, firstOf(s.TrySetPermits(ctx, 1, latchkey.TTL(time.Hour))))
	same("semaphore", s.Name(), time.Hour)
	require.NoError(t, firstOf(s.SetTTL(ctx, latchkey.NoExpiry)))
	same("semaphore without", s.Name(), latchkey.NoExpiry)
	require.NoError(t, firstOf(p.TrySetPermits(ctx, 1, latchkey.TTL(time.Hour))))
	require.NoError(t, p.AddPermits(ctx, 1))
	same("permits", p.Name(), time.Hour)
	require.NoError(t, firstOf(p.SetTTL(ctx, 2*time.Hour)))
	same("permits for longer", p.Name(), 2*time.Hour)
	require.NoError(t, firstOf(l.TrySetCount(ctx, 1, latchkey.TTL(time.Hour))))
	same("latch", l.Name(), time.Hour)
	require.NoError(t, firstOf(l.CountDown(ctx)))
	same("open latch", l.Name(), time.Hour+10*time.Minute)
	require.NoError(t, firstOf(l.TrySetCount(ctx, 1)))
	same("latch without", l.Name(), latchkey.NoExpiry)
}

// A number that Redisson made can be used as any kind, because nothing shows what it is.
func TestNumberKinds_of_Redisson(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	name := rig.Name(t)
	s, p, l := client.NewSemaphore(name), client.NewPermitSemaphore(name), client.NewCountDownLatch(name)
	admin.Do("SET", name, "5")
	require.NoError(t, s.Acquire(ctx))
	require.NoError(t, s.AddPermits(ctx, 1))
	permit, err := p.Acquire(ctx)
	require.NoError(t, err)
	require.NoError(t, permit.Release(ctx))
	left, err := l.CountDown(ctx)
	require.NoError(t, err)
	assert.Equal(t, 4, left)
	require.NoError(t, s.Acquire(ctx), "what a client of this library has found, it does not claim")
	assert.False(t, admin.Exists(kindKeyOf(name)))
}

// A lost key leaves the number as Redisson would have made it.
func TestNumberKinds_lost_key(t *testing.T) {
	server := rig.Shared()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	for kind, makeOne := range numbers {
		name := rig.Name(t) + kind
		makeOne(t, client, name)
		admin.Do("DEL", kindKeyOf(name))
		require.NoError(t, firstOf(client.NewCountDownLatch(name).Count(t.Context())), kind)
		require.NoError(t, client.NewSemaphore(name).TryAcquire(t.Context()), kind)
	}
}

// Whoever looks at the number learns of which kind it is, even if no permit is acquired.
func TestNumberKinds_are_shown(t *testing.T) {
	server, ctx := rig.Shared(), within(t, soon)
	client := connect(t, server)
	name := rig.Name(t)
	require.NoError(t, client.NewPermitSemaphore(name+"p").SetPermits(ctx, 3))
	require.NoError(t, client.NewSemaphore(name+"s").ReleaseN(ctx, 3))
	require.NoError(t, firstOf(client.NewCountDownLatch(name+"l").TrySetCount(ctx, 3)))
	for each, want := range map[string]latchkey.Kind{"p": latchkey.KindSemaphore, "s": latchkey.KindSemaphore, "l": latchkey.KindLatch} {
		found, err := client.Inspect(ctx, name+each)
		require.NoError(t, err)
		assert.Equal(t, want, found.Kind, each)
	}
}

// The names x and {x} have the same hash tag, and are two objects.
func TestNumberKinds_of_a_name_in_braces(t *testing.T) {
	server, ctx := rig.Shared(), within(t, soon)
	client, name := connect(t, server), rig.Name(t)
	s, latch := client.NewSemaphore(name), client.NewCountDownLatch("{"+name+"}")
	require.NoError(t, s.SetPermits(ctx, 1))
	require.NoError(t, firstOf(latch.TrySetCount(ctx, 1)))
	require.NoError(t, s.Release(ctx))
	require.NoError(t, firstOf(latch.Delete(ctx)))
	assert.ErrorIs(t, firstOf(client.NewCountDownLatch(name).CountDown(ctx)), latchkey.ErrWrongKind)
}
