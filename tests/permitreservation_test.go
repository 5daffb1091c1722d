package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// keepsShortly keeps permits for a waiter for short times.
var keepsShortly = latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 250 * time.Millisecond, PollCeiling: 100 * time.Millisecond}}

// pool is a semaphore of either kind. take returns a function that gives the permits back.
type pool struct {
	prepare func(t *testing.T, server *rig.Server, name string) // leaves some available
	// take waits for the permits for as long as wait says, or makes one attempt if wait is 0.
	take func(ctx context.Context, c *latchkey.Client, name string, n int, wait time.Duration) (give func() error, err error)
}

func takeCounted(ctx context.Context, c *latchkey.Client, name string, n int, wait time.Duration) (give func() error, err error) {
	s := c.NewSemaphore(name)
	if wait > 0 {
		err = s.AcquireN(ctx, n, latchkey.Wait(wait))
	} else {
		err = s.TryAcquireN(ctx, n)
	}
	return func() error { return s.ReleaseN(context.WithoutCancel(ctx), n) }, err
}

func takePermits(ctx context.Context, c *latchkey.Client, name string, n int, wait time.Duration) (give func() error, err error) {
	s := c.NewPermitSemaphore(name)
	var permits []*latchkey.Permit
	if wait > 0 {
		permits, err = s.AcquireN(ctx, n, latchkey.Wait(wait))
	} else {
		permits, err = s.TryAcquireN(ctx, n)
	}
	give = func() error {
		for _, p := range permits {
			// The lease of a grant is short at first, too short for a crowded machine.
			if err := p.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, latchkey.ErrNotHeld) {
				return err
			}
		}
		return nil
	}
	return give, err
}

// Ten permits in all, of which four are lost for good, unless Redisson has set them.
var pools = map[string]pool{
	"Semaphore": {func(t *testing.T, server *rig.Server, name string) {
		s := connect(t, server).NewSemaphore(name)
		require.NoError(t, s.SetPermits(t.Context(), 10))
		require.NoError(t, s.AcquireN(t.Context(), 4))
	}, takeCounted},
	"Semaphore of Redisson": {func(t *testing.T, server *rig.Server, name string) {
		rig.NewAdmin(t, server).Do("SET", name, "6")
	}, takeCounted},
	"PermitSemaphore": {func(t *testing.T, server *rig.Server, name string) {
		s := connect(t, server).NewPermitSemaphore(name)
		require.NoError(t, s.SetPermits(t.Context(), 10))
		_, err := s.AcquireN(t.Context(), 4, latchkey.Lease(latchkey.NoExpiry))
		require.NoError(t, err)
	}, takePermits},
}

// Requests that can never be satisfied wait. Others get permits for nearly half of the time,
// however many such requests there are. Permits with ids go by a strict order instead.
func TestRequestsThatCannotBeSatisfiedStarveNobody(t *testing.T) {
	t.Parallel()
	for what, p := range pools {
		if what == "PermitSemaphore" {
			continue
		}
		for _, waiters := range []int{1, 3} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				p.prepare(t, server, name)
				ctx, cancel := context.WithCancel(t.Context())
				all := rig.Goroutines(t)
				for range waiters {
					client := connect(t, server, keepsShortly)
					all.Go(func() {
						_, err := p.take(ctx, client, name, 7, time.Minute)
						assert.ErrorIs(t, err, context.Canceled)
					})
				}
				awaitWaiter(t, rig.NewAdmin(t, server), name)
				other, tries, got := connect(t, server, keepsShortly), 0, 0
				for start := time.Now(); time.Since(start) < 2*time.Second || got <= tries/6 && time.Since(start) < soon; tries++ {
					if give, err := p.take(t.Context(), other, name, 1, 0); err == nil {
						got++
						require.NoError(t, give())
					}
					rest(10 * time.Millisecond)
				}
				cancel()
				all.Wait()
				t.Logf("%s, %d waiters: %d of %d tries of others succeed", what, waiters, got, tries)
				assert.Greater(t, got, tries/6, "nearly half, but few tries on a busy machine")
			})
		}
	}
}

// All permits are in use again and again, each use longer than the first periods for which permits
// are kept for a waiter. A request for six gets them, even while another waits for seven of a
// Semaphore, of which four are lost.
func TestALargeRequestOutlastsLongUses(t *testing.T) {
	t.Parallel()
	for what, p := range pools {
		if what == "Semaphore of Redisson" {
			continue // its total is not known
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			p.prepare(t, server, name)
			ctx, cancel := context.WithCancel(t.Context())
			all := rig.Goroutines(t)
			for range 8 {
				client := connect(t, server, keepsShortly)
				all.Go(func() {
					for ctx.Err() == nil {
						if give, err := p.take(ctx, client, name, 1, time.Minute); err == nil {
							rest(2 * keepsShortly.Tuning.StaleWaiterTimeout)
							assert.NoError(t, give())
						}
					}
				})
			}
			var witness looked = connect(t, server).NewSemaphore(name)
			if what == "PermitSemaphore" {
				witness = connect(t, server).NewPermitSemaphore(name)
			}
			rig.Eventually(t, soon, "all are in use", func() error {
				if n, err := freeIn(t.Context(), witness); n > 0 || err != nil {
					return errors.Join(err, fmt.Errorf("%d available", n))
				}
				return nil
			})
			impossible, large := connect(t, server, keepsShortly), connect(t, server, keepsShortly)
			if what != "PermitSemaphore" { // where it would block the others: nobody knows that four permits never come back
				all.Go(func() { _, _ = p.take(ctx, impossible, name, 7, time.Minute) })
			}
			start := time.Now()
			give, err := p.take(t.Context(), large, name, 6, time.Minute)
			t.Logf("%s: six of six after %v", what, time.Since(start).Round(time.Millisecond))
			cancel()
			require.NoError(t, err)
			require.NoError(t, give())
			all.Wait()
		})
	}
}
