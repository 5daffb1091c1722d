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

// A test of operations that count during an outage, in which nothing reaches the server, so that no
// answer is lost.

// countingOperation is an operation that counts: it gives something back, or adds to a number.
type countingOperation struct {
	prepare func(ctx context.Context, c *latchkey.Client, name string) (any, error)
	do      func(ctx context.Context, c *latchkey.Client, name string, prepared any) error
	read    func(ctx context.Context, c *latchkey.Client, name string) (int, error)
	want    int // afterwards
}

var countingOperations = map[string]countingOperation{
	"Release": {takenSemaphore, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		return c.NewSemaphore(name).Release(ctx)
	}, availablePermits, 3},
	"ReleaseIfExists": {takenSemaphore, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		return firstOf(c.NewSemaphore(name).ReleaseIfExists(ctx, 1))
	}, availablePermits, 3},
	"AddPermits": {takenSemaphore, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		return c.NewSemaphore(name).AddPermits(ctx, 2)
	}, availablePermits, 4},
	"AddPermits, for a short time": {takenSemaphore, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		return c.NewSemaphore(name).AddPermits(ctx, 2)
	}, availablePermits, 4},
	"AddPermits of permits": {takenPermits, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		return c.NewPermitSemaphore(name).AddPermits(ctx, 2)
	}, availableOfPermits, 4},
	"Release by id": {takenPermits, func(ctx context.Context, c *latchkey.Client, name string, id any) error {
		return firstOf(c.NewPermitSemaphore(name).Release(ctx, id.(string)))
	}, availableOfPermits, 3},
	"CountDown": {closedLatch, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		return firstOf(c.NewCountDownLatch(name).CountDown(ctx))
	}, countsLeft, 2},
	"CountDownN": {closedLatch, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		return firstOf(c.NewCountDownLatch(name).CountDownN(ctx, 2))
	}, countsLeft, 1},
	"CountDownAs": {closedLatch, func(ctx context.Context, c *latchkey.Client, name string, _ any) error {
		return firstOf(c.NewCountDownLatch(name).CountDownAs(ctx, "me"))
	}, countsLeft, 2},
}

func takenSemaphore(ctx context.Context, c *latchkey.Client, name string) (any, error) {
	s := c.NewSemaphore(name)
	return nil, errors.Join(firstOf(s.TrySetPermits(ctx, 3)), s.Acquire(ctx))
}

func availablePermits(ctx context.Context, c *latchkey.Client, name string) (int, error) {
	stats, err := statsOf(ctx, c.NewSemaphore(name))
	return stats.Available, err
}

func takenPermits(ctx context.Context, c *latchkey.Client, name string) (any, error) {
	s := c.NewPermitSemaphore(name)
	if _, err := s.TrySetPermits(ctx, 3); err != nil {
		return nil, err
	}
	p, err := s.Acquire(ctx, latchkey.Lease(time.Hour))
	return p.ID(), err
}

func availableOfPermits(ctx context.Context, c *latchkey.Client, name string) (int, error) {
	stats, err := statsOf(ctx, c.NewPermitSemaphore(name))
	return stats.Available, err
}

func closedLatch(ctx context.Context, c *latchkey.Client, name string) (any, error) {
	return nil, firstOf(c.NewCountDownLatch(name).TrySetCount(ctx, 3))
}

func countsLeft(ctx context.Context, c *latchkey.Client, name string) (int, error) {
	return c.NewCountDownLatch(name).Count(ctx)
}

// cutOff returns when the client sends nothing, because it knows that there is no connection.
func cutOff(t *testing.T, client *latchkey.Client) {
	t.Helper()
	s := client.NewSemaphore("nothing is sent to")
	rig.Eventually(t, soon, "the connection is gone", func() error {
		err := s.SetPermits(t.Context(), 0)
		if !errors.Is(err, latchkey.ErrUnavailable) || errors.Is(err, latchkey.ErrUnknownOutcome) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
}

// An operation that counts is repeated in the background after an outage, whether it was sent or
// not. The caller is told so.
func TestCountsAfterAnOutage(t *testing.T) {
	t.Parallel()
	for outage, begin := range map[string]func(*rig.Link){"cut": (*rig.Link).Cut, "silent": (*rig.Link).Silence} {
		for what, o := range countingOperations {
			t.Run(what+", "+outage, func(t *testing.T) {
				t.Parallel()
				if outage == "silent" {
					rig.Long(t) // it takes some seconds to notice
				}
				server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
				link, witness := rig.NewLink(t, server), connect(t, server)
				client := connectVia(t, server, link.Addr(), latchkey.Options{RetryBudget: 300 * time.Millisecond})
				prepared, err := o.prepare(ctx, witness, name)
				require.NoError(t, err)
				rig.Eventually(t, soon, "it is connected", func() error { return firstOf(client.Inspect(ctx, name)) })
				begin(link)
				cutOff(t, client)
				err = o.do(ctx, client, name, prepared)
				require.ErrorIs(t, err, latchkey.ErrUnavailable)
				require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
				if outage == "cut" {
					link.Restore()
				} else {
					link.Heal()
				}
				counted := func() error {
					if n, err := o.read(ctx, witness, name); err != nil || n != o.want {
						return fmt.Errorf("%d, want %d: %w", n, o.want, err)
					}
					return nil
				}
				rig.Eventually(t, soon, "it counts", counted)
				require.NoError(t, client.Close(ctx))
				assert.NoError(t, counted(), "it counts once")
			})
		}
	}
}

// Operations that set a number, and that never reached the server, have changed nothing and never
// will: the caller may decide anew.
func TestSettingsThatNeverReachedTheServer(t *testing.T) {
	t.Parallel()
	server, name, ctx := rig.Shared(), rig.Name(t), within(t, soon)
	link := rig.NewLink(t, server)
	client := connectVia(t, server, link.Addr(), latchkey.Options{RetryBudget: 3 * time.Second})
	s, p, l := client.NewSemaphore(name+"s"), client.NewPermitSemaphore(name+"p"), client.NewCountDownLatch(name+"l")
	rig.Eventually(t, soon, "it is connected", func() error { return firstOf(client.Inspect(ctx, name)) })
	link.Cut()
	cutOff(t, client)
	all := rig.Goroutines(t)
	for what, set := range map[string]func() error{
		"SetPermits":    func() error { return s.SetPermits(ctx, 1) },
		"TrySetPermits": func() error { return firstOf(p.TrySetPermits(ctx, 1)) },
		"SetTTL":        func() error { return firstOf(s.SetTTL(ctx, time.Hour)) },
		"TrySetCount":   func() error { return firstOf(l.TrySetCount(ctx, 1)) },
		"Delete":        func() error { return firstOf(p.Delete(ctx)) },
		"Delete latch":  func() error { return firstOf(l.Delete(ctx)) },
	} {
		all.Go(func() {
			err := set()
			assert.ErrorIs(t, err, latchkey.ErrUnavailable, what)
			assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome, what)
		})
	}
	all.Wait()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	assert.NotErrorIs(t, s.AddPermits(ended, 1), latchkey.ErrUnknownOutcome, "a context that ended before")
	link.Restore()
	rig.Eventually(t, soon, "the connection", func() error { return firstOf(client.Inspect(ctx, name)) })
	require.NoError(t, client.Close(ctx))
	witness := connect(t, server)
	assert.ErrorIs(t, firstOf(statsOf(ctx, witness.NewSemaphore(s.Name()))), latchkey.ErrNotSet)
	assert.ErrorIs(t, firstOf(statsOf(ctx, witness.NewPermitSemaphore(p.Name()))), latchkey.ErrNotSet)
	assert.ErrorIs(t, firstOf(witness.NewCountDownLatch(l.Name()).Count(ctx)), latchkey.ErrNotSet)
}
