package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// ttlPool is what the two semaphores whose permits have leases have in common.
type ttlPool interface {
	Acquire(ctx context.Context, options ...latchkey.PermitOption) (*latchkey.Permit, error)
	TrySetPermits(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
	TryAcquire(ctx context.Context, options ...latchkey.TryPermitOption) (*latchkey.Permit, error)
	SetTTL(ctx context.Context, d time.Duration) (bool, error)
	Delete(ctx context.Context) (bool, error)
	SetLease(ctx context.Context, id string, d time.Duration) error
	Release(ctx context.Context, ids ...string) ([]latchkey.PermitState, error)
}

var ttlPools = map[string]func(*latchkey.Client, string) ttlPool{
	"permits":      func(c *latchkey.Client, name string) ttlPool { return c.NewPermitSemaphore(name) },
	"fair permits": func(c *latchkey.Client, name string) ttlPool { return c.NewFairSemaphore(name) },
}

// endsWith checks that the holder does not rely on its permit for longer than the semaphore lives.
func endsWith(admin *rig.Admin, name string, p *latchkey.Permit) error {
	valid, began := p.ValidFor(), time.Now()
	if left := admin.PTTL(name); valid > left+time.Since(began) {
		return fmt.Errorf("valid for %v, and the semaphore ends in %v", valid, left)
	}
	return p.Err()
}

// A permit ends no later than its semaphore, however it was acquired.
func TestPermitEndsWithItsSemaphore(t *testing.T) {
	t.Parallel()
	const ttl = 20 * time.Second
	for sort, open := range ttlPools {
		for what, options := range map[string][]latchkey.PermitOption{
			"renewed": nil, "fixed": {latchkey.Lease(time.Hour)}, "permanent": {latchkey.Lease(latchkey.NoExpiry)},
		} {
			t.Run(sort+" "+what, func(t *testing.T) {
				t.Parallel()
				server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
				admin, client := rig.NewAdmin(t, server), connect(t, server)
				s := open(client, name)
				require.NoError(t, firstOf(s.TrySetPermits(ctx, 1, latchkey.TTL(ttl))))
				p, err := s.Acquire(ctx, options...)
				require.NoError(t, err)
				require.NoError(t, endsWith(admin, name, p))
				if what != "permanent" {
					require.NoError(t, p.Extend(ctx, 2*time.Hour))
					require.NoError(t, endsWith(admin, name, p), "extended")
				}
				waiting, other := make(chan error, 1), open(connect(t, server), name)
				go func() {
					next, err := other.Acquire(ctx, options...)
					if err == nil {
						err = endsWith(admin, name, next)
					}
					waiting <- err
				}()
				permitQueueLength(t, admin, name, 1)
				require.NoError(t, p.Release(ctx))
				require.NoError(t, rig.Await(t, soon, "the waiter", waiting))
			})
		}
	}
}

// The holder learns of an end that is set later at its next renewal, and of a later end too.
func TestPermitLearnsOfTheEndOfItsSemaphore(t *testing.T) {
	t.Parallel()
	for sort, open := range ttlPools {
		t.Run(sort, func(t *testing.T) {
			t.Parallel()
			server, name, ctx := rig.Shared(), rig.Name(t), within(t, time.Minute)
			admin, other := rig.NewAdmin(t, server), connect(t, server)
			const lease, ttl = 18 * time.Second, 15 * time.Second // a renewal every 6 s, and none of them too late
			client := connect(t, server, latchkey.Options{Lease: lease})
			s := open(client, name)
			require.NoError(t, firstOf(s.TrySetPermits(ctx, 2)))
			p, err := s.Acquire(ctx, latchkey.Lease(time.Hour))
			require.NoError(t, err)
			short, err := s.Acquire(ctx)
			require.NoError(t, err)
			require.NoError(t, firstOf(open(other, name).SetTTL(ctx, ttl)))
			rig.Eventually(t, soon, "it learns of the end", func() error { return endsWith(admin, name, short) })
			require.NoError(t, firstOf(open(other, name).SetTTL(ctx, latchkey.NoExpiry)))
			rig.Eventually(t, soon, "it learns that there is none", func() error {
				if left := short.ValidFor(); left < ttl {
					return fmt.Errorf("valid for %v", left)
				}
				return short.Err()
			})
			require.NoError(t, firstOf(open(other, name).SetTTL(ctx, ttl)))
			require.NoError(t, s.SetLease(ctx, p.ID(), 30*time.Minute))
			require.NoError(t, endsWith(admin, name, p), "a lease of its own")
		})
	}
}

// When the semaphore is over, so is the permit, and the next semaphore of that name has all its
// permits.
func TestPermitIsLostWithItsSemaphore(t *testing.T) {
	t.Parallel()
	server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
	client := connect(t, server)
	s, again := client.NewPermitSemaphore(name), connect(t, server).NewPermitSemaphore(name)
	require.NoError(t, firstOf(s.TrySetPermits(ctx, 1, latchkey.TTL(time.Second))))
	p, err := s.Acquire(ctx)
	require.NoError(t, err)
	rig.Eventually(t, soon, "another client sets the semaphore again", func() error {
		set, err := again.TrySetPermits(ctx, 1)
		if err == nil && !set {
			err = fmt.Errorf("it is there")
		}
		return err
	})
	assert.ErrorIs(t, p.Err(), latchkey.ErrLost)
	require.NoError(t, firstOf(again.TryAcquire(ctx)))
	assert.ErrorIs(t, p.Release(ctx), latchkey.ErrLost)
}

// A semaphore that is deleted takes its permits along: their holders learn of it at the next
// renewal, or when they release, and the next semaphore of that name has all its permits.
func TestPermitIsLostWithADeletedSemaphore(t *testing.T) {
	t.Parallel()
	for sort, open := range ttlPools {
		t.Run(sort, func(t *testing.T) {
			t.Parallel()
			server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
			s, other := open(connect(t, server, latchkey.Options{Lease: 6 * time.Second}), name), open(connect(t, server), name)
			require.NoError(t, firstOf(s.TrySetPermits(ctx, 2)))
			renewed, err := s.Acquire(ctx)
			require.NoError(t, err)
			fixed, err := s.Acquire(ctx, latchkey.Lease(time.Hour))
			require.NoError(t, err)
			require.NoError(t, firstOf(other.Delete(ctx)))
			require.NoError(t, firstOf(other.TrySetPermits(ctx, 2)))
			for range 2 {
				require.NoError(t, firstOf(other.TryAcquire(ctx)))
			}
			rig.Await(t, soon, "the holder learns of it", renewed.Lost())
			assert.ErrorIs(t, renewed.Err(), latchkey.ErrLost)
			assert.ErrorIs(t, fixed.Release(ctx), latchkey.ErrLost)
			assert.ErrorIs(t, firstOf(other.TryAcquire(ctx)), latchkey.ErrNotAcquired, "a release of a lost permit adds none")
		})
	}
}

// No permit outlasts its semaphore, even one that was acquired in the last millisecond.
func TestPermitsOfTheLastMillisecond(t *testing.T) {
	t.Parallel()
	for sort, open := range ttlPools {
		t.Run(sort, func(t *testing.T) {
			t.Parallel()
			server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
			admin, client := rig.NewAdmin(t, server), connect(t, server)
			s := open(client, name)
			for range 50 { // an acquisition seldom comes in that millisecond
				require.NoError(t, firstOf(s.TrySetPermits(ctx, 1000, latchkey.TTL(3*time.Millisecond))))
				for range 100 {
					if firstOf(s.Acquire(ctx, latchkey.Lease(time.Hour))) != nil {
						break
					}
				}
				gone(t, admin, name)
				gone(t, admin, idsOf(name))
			}
		})
	}
}
