package tests

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// While an acquisition without a reply is undone, another object is stored under the name of the
// semaphore. When the acquisition is executed later, it still takes nothing.
func TestAcquisitionGivenUpWhileAnotherKindIsThere(t *testing.T) {
	rig.Need(t, rig.Stats)
	for what, k := range map[string]struct {
		acquire counted
		set     func(ctx context.Context, c *latchkey.Client, name string) error
		free    func(ctx context.Context, c *latchkey.Client, name string) (int, error)
	}{
		"Semaphore": {onSemaphores[0], func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewSemaphore(name).SetPermits(ctx, 5)
		}, availablePermits},
		"PermitSemaphore for ever": {onPermits[1], func(ctx context.Context, c *latchkey.Client, name string) error {
			return c.NewPermitSemaphore(name).SetPermits(ctx, 5)
		}, availableOfPermits},
	} {
		t.Run(what, func(t *testing.T) {
			acquire := k.acquire
			server, name := rig.Fresh(t), rig.Name(t)
			admin, witness, tap := rig.NewAdmin(t, server), connect(t, server), rig.NewTap(t, server)
			require.NoError(t, k.set(t.Context(), witness, name))
			require.NoError(t, acquire.do(t.Context(), witness, name), "the server must know the script that is sent late")
			client := connectVia(t, server, tap.Addr())
			first := tap.Lose(1, rig.Mentions(name), rig.CutRequest)
			heal := tap.LoseAll(rig.Mentions(name), rig.CutRequest)
			ctx, giveUp := context.WithCancel(t.Context())
			acquiring := make(chan error, 1)
			go func() { acquiring <- acquire.do(ctx, client, name) }()
			late := rig.Await(t, soon, "the acquisition", first)
			giveUp()
			require.ErrorIs(t, rig.Await(t, soon, "its outcome", acquiring), latchkey.ErrUnknownOutcome)
			admin.Do("RENAME", name, "{"+name+"}aside")
			admin.Do("HSET", name, "another", "kind")
			before := admin.CommandStats()
			tap.Forget()
			heal()
			rig.Eventually(t, soon, "it is given up", func() error {
				if admin.Since(before)["evalsha"]+admin.Since(before)["eval"] == 0 {
					return errors.New("nothing was executed")
				}
				return nil
			})
			admin.Do("RENAME", "{"+name+"}aside", name)
			deliverLate(t, server, late.Args)
			free, err := k.free(t.Context(), witness, name)
			require.NoError(t, err)
			assert.Equal(t, 3, free)
		})
	}
}

// No operation touches a string that is not a number of permits.
func TestNoNumberOfPermits(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	for _, value := range []string{"1.5", "0x10", " 7", "1e3", "007", "-0", "nan", "99999999999999999999"} {
		t.Run(value, func(t *testing.T) {
			admin := rig.NewAdmin(t, server)
			s := newSemaphore(t, connect(t, server), 5)
			pool := connect(t, server).NewPermitSemaphore(s.Name())
			admin.Do("SET", s.Name(), value)
			for what, try := range map[string]func() error{
				"Acquire":       func() error { return s.TryAcquire(ctx) },
				"Release":       func() error { return s.Release(ctx) },
				"AddPermits":    func() error { return s.AddPermits(ctx, 1) },
				"SetPermits":    func() error { return s.SetPermits(ctx, 9) },
				"Inspect":       func() error { return firstOf(statsOf(ctx, s)) },
				"Drain":         func() error { return firstOf(s.Drain(ctx)) },
				"permits":       func() error { return firstOf(pool.TryAcquire(ctx)) },
				"SetPermits, 2": func() error { return pool.SetPermits(ctx, 9) },
			} {
				assert.ErrorIs(t, try(), latchkey.ErrWrongKind, what)
				assert.Equal(t, value, admin.Text("GET", s.Name()), what)
				assert.Equal(t, "5", admin.Text("GET", "latchkey_sc_total:{"+s.Name()+"}"), what)
			}
		})
	}
}

// There are never more permits than Redisson can count.
func TestSetPermitsBeyondWhatCanBeCounted(t *testing.T) {
	s := newSemaphore(t, connect(t, rig.Shared()), 1)
	require.NoError(t, s.ReleaseN(t.Context(), math.MaxInt32-1))
	assert.ErrorIs(t, s.SetPermits(t.Context(), math.MaxInt32), latchkey.ErrInvalid)
	assert.Equal(t, math.MaxInt32, available(t, s))
}

// The message of a release counts all available permits, including those whose leases have ended: a
// process of Redisson wakes that many waiters.
func TestReleaseTellsOfExpiredPermits(t *testing.T) {
	for what, release := range map[string]func(ctx context.Context, s *latchkey.PermitSemaphore, p *latchkey.Permit) error{
		"by its holder": func(ctx context.Context, _ *latchkey.PermitSemaphore, p *latchkey.Permit) error {
			return p.Release(ctx)
		},
		"by its id": func(ctx context.Context, s *latchkey.PermitSemaphore, p *latchkey.Permit) error {
			return firstOf(s.Release(ctx, p.ID()))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, ctx := rig.Shared(), t.Context()
			s := newPermits(t, connect(t, server), 3)
			p, err := s.Acquire(ctx)
			require.NoError(t, err)
			_, err = s.AcquireN(ctx, 2, latchkey.Lease(time.Second))
			require.NoError(t, err)
			rig.Eventually(t, soon, "two leases end", func() error {
				if n, err := freeIn(ctx, s); n != 2 || err != nil {
					return errors.Join(err, fmt.Errorf("%d available", n))
				}
				return nil
			})
			heard := subscribeRaw(t, server, semaphoreChannelOf(s.Name()))
			require.NoError(t, release(ctx, connect(t, server).NewPermitSemaphore(s.Name()), p))
			assert.Equal(t, "3", rig.Await(t, soon, "the message", heard))
		})
	}
}

// Held permits outlive the number of permits and its TTL when the semaphore is set again without a
// TTL.
func TestPermitsOutliveTheTimeToLiveOfASemaphoreThatIsSetAnew(t *testing.T) {
	t.Parallel()
	server, ctx := rig.Shared(), t.Context()
	s := connect(t, server).NewPermitSemaphore(rig.Name(t))
	const ttl = 3 * time.Second
	_, err := s.TrySetPermits(ctx, 3, latchkey.TTL(ttl))
	require.NoError(t, err)
	p, err := s.Acquire(ctx)
	require.NoError(t, err)
	rig.NewAdmin(t, server).Do("DEL", s.Name())
	set, err := s.TrySetPermits(ctx, 3)
	require.NoError(t, err)
	require.True(t, set)
	rig.Throughout(t, ttl+ttl/10, "one of three is held", func() error {
		if n, err := acquiredIn(ctx, s); n != 1 || err != nil {
			return errors.Join(err, fmt.Errorf("%d are held", n))
		}
		return nil
	})
	assert.NoError(t, p.Release(ctx))
	counts(t, s, 3, 0)
}
