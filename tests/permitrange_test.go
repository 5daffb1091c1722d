package tests

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A total is from 0 to 2147483647. What would lead out of that range is refused, and changes
// nothing.
func TestTotalsOfPermits(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt32
	type semaphore interface {
		AddPermits(ctx context.Context, n int) error
		SetPermits(ctx context.Context, n int) error
		TrySetPermits(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
	}
	kinds := map[string]func(c *latchkey.Client, name string) (semaphore, func(context.Context) (total int, err error)){
		"semaphore": func(c *latchkey.Client, name string) (semaphore, func(context.Context) (int, error)) {
			s := c.NewSemaphore(name)
			return s, func(ctx context.Context) (int, error) { stats, err := statsOf(ctx, s); return stats.Total, err }
		},
		"permits": func(c *latchkey.Client, name string) (semaphore, func(context.Context) (int, error)) {
			s := c.NewPermitSemaphore(name)
			return s, func(ctx context.Context) (int, error) { stats, err := statsOf(ctx, s); return stats.Total, err }
		},
		"fair permits": func(c *latchkey.Client, name string) (semaphore, func(context.Context) (int, error)) {
			s := c.NewFairSemaphore(name)
			return s, func(ctx context.Context) (int, error) { stats, err := statsOf(ctx, s); return stats.Total, err }
		},
	}
	const unset = -1
	for kind, open := range kinds {
		for what, each := range map[string]struct {
			total, add, want int // want is the total afterwards, or unset
			refused          bool
		}{
			"below 0":          {0, -5, 0, true},
			"below 0 by one":   {3, -4, 3, true},
			"to 0":             {3, -3, 0, false},
			"far below":        {3, -most, 3, true},
			"to the most":      {3, most - 3, most, false},
			"above the most":   {4, most - 3, 4, true},
			"far above":        {most, most, most, true},
			"none, below 0":    {unset, -5, unset, true},
			"none, by one":     {unset, -1, unset, true},
			"none, above 0":    {unset, 5, 5, false},
			"none to the most": {unset, most, most, false},
			"one too many":     {0, most + 1, 0, true},
			"one too few":      {0, -most - 1, 0, true},
			"nothing":          {3, 0, 3, true},
			"the least number": {3, math.MinInt, 3, true},
		} {
			t.Run(kind+" "+what, func(t *testing.T) {
				t.Parallel()
				ctx := within(t, soon)
				s, total := open(connect(t, rig.Shared()), rig.Name(t))
				if each.total != unset {
					require.NoError(t, firstOf(s.TrySetPermits(ctx, each.total)))
				}
				err := s.AddPermits(ctx, each.add)
				if each.refused {
					assert.ErrorIs(t, err, latchkey.ErrInvalid)
				} else {
					assert.NoError(t, err)
				}
				n, err := total(ctx)
				if each.want == unset {
					require.ErrorIs(t, err, latchkey.ErrNotSet)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, each.want, n)
				assert.ErrorIs(t, s.SetPermits(ctx, -1), latchkey.ErrInvalid)
				assert.ErrorIs(t, s.SetPermits(ctx, most+1), latchkey.ErrInvalid)
			})
		}
	}
}

// A total below the number of acquired permits leaves a debt; one below 0 is refused even then. A
// number that Redisson has made negative can be raised step by step.
func TestTotalsOfAcquiredPermits(t *testing.T) {
	server, ctx := rig.Shared(), within(t, soon)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	s, p := client.NewSemaphore(rig.Name(t)+"s"), client.NewPermitSemaphore(rig.Name(t)+"p")
	require.NoError(t, s.SetPermits(ctx, 3))
	require.NoError(t, s.AcquireN(ctx, 3))
	require.NoError(t, s.AddPermits(ctx, -2))
	require.ErrorIs(t, s.AddPermits(ctx, -2), latchkey.ErrInvalid)
	stats, err := statsOf(ctx, s)
	require.NoError(t, err)
	assert.Equal(t, []int{-2, 1}, []int{stats.Available, stats.Total})
	require.ErrorIs(t, s.ReleaseN(ctx, math.MaxInt32+1), latchkey.ErrInvalid)
	require.NoError(t, s.ReleaseN(ctx, math.MaxInt32))
	require.ErrorIs(t, s.ReleaseN(ctx, 3), latchkey.ErrInvalid, "more are available than Redisson can count")

	require.NoError(t, p.SetPermits(ctx, 3))
	require.NoError(t, firstOf(p.AcquireN(ctx, 3)))
	require.NoError(t, p.AddPermits(ctx, -3))
	require.ErrorIs(t, p.AddPermits(ctx, -1), latchkey.ErrInvalid)
	require.NoError(t, p.SetPermits(ctx, 0))

	admin.Do("SET", p.Name()+"java", "-5")
	java := client.NewPermitSemaphore(p.Name() + "java")
	require.NoError(t, java.AddPermits(ctx, 2))
	require.ErrorIs(t, java.AddPermits(ctx, -1), latchkey.ErrInvalid)
	admin.Do("SET", s.Name()+"java", "1")
	require.NoError(t, client.NewSemaphore(s.Name()+"java").AddPermits(ctx, -2), "its total is unknown")
}
