package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// hourly is a rate at which nothing comes back during a test.
var hourly = latchkey.Rate{N: 10, Per: 10 * time.Hour, Burst: 5}

func mustAllow(t *testing.T, l *latchkey.RateLimiter, n int) {
	t.Helper()
	allowed, err := l.AllowN(within(t, soon), n)
	require.NoError(t, err)
	require.True(t, allowed)
}

func mustReserve(t *testing.T, l *latchkey.RateLimiter, n int) *latchkey.Reservation {
	t.Helper()
	r, err := l.ReserveN(within(t, soon), n)
	require.NoError(t, err)
	return r
}

// availableNow returns how many requests may go at once, as any client sees it.
func availableNow(t *testing.T, client *latchkey.Client, name string) int {
	t.Helper()
	o, err := client.Inspect(within(t, soon), name)
	require.NoError(t, err)
	require.Equal(t, latchkey.KindRate, o.Kind)
	return o.Available
}

func becomesAvailable(t *testing.T, client *latchkey.Client, name string, want int) {
	t.Helper()
	rig.Eventually(t, soon, "requests are given back", func() error {
		if got := availableNow(t, client, name); got != want {
			return fmt.Errorf("%d are available", got)
		}
		return nil
	})
}

// All clients together have the burst, and each call takes one round trip.
func TestRateLimiter_is_shared(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client, other := connectVia(t, server, tap.Addr()), connect(t, server)
	one, two := client.NewRateLimiter(name, hourly), other.NewRateLimiter(name, hourly)
	o, err := one.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, latchkey.KindNone, o.Kind)
	mustAllow(t, one, 3)
	tap.Forget()
	for n, want := range []bool{1: true, 2: true, 3: false} {
		if n > 0 {
			allowed, err := two.Allow(within(t, soon))
			require.NoError(t, err)
			require.Equal(t, want, allowed, n)
		}
	}
	allowed, err := one.Allow(within(t, soon))
	require.NoError(t, err)
	require.False(t, allowed)
	require.Len(t, mentioning(tap, name), 1)

	o, err = one.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a rate limiter", o.What)
	require.Equal(t, hourly, o.Rate)
	require.Equal(t, []int{0, 5}, []int{o.Available, o.Total})
	require.False(t, o.Locked())
	_, err = client.ForceUnlock(t.Context(), name)
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
}

// Reservations of all clients have their turns in the order in which they were made, large ones
// too.
func TestRateLimiter_turns(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	var all []*latchkey.RateLimiter
	for range 3 {
		all = append(all, connect(t, server).NewRateLimiter(name, hourly))
	}
	mustAllow(t, all[0], 5)
	var before time.Duration
	for i, n := range []int{1, 5, 1, 1, 4, 1} {
		before += time.Duration(n) * time.Hour
		require.Equal(t, before, mustReserve(t, all[i%3], n).Delay().Round(time.Minute), i)
	}
	allowed, err := all[0].Allow(within(t, soon))
	require.NoError(t, err)
	require.False(t, allowed)
}

// Waits of all clients end when their turns come, and none earlier.
func TestRateLimiter_waits(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	rate := latchkey.Rate{N: 20, Per: time.Second, Burst: 2}
	began := time.Now()
	ends := make(chan time.Duration, 20)
	var waits sync.WaitGroup
	for range 2 {
		l := connect(t, server).NewRateLimiter(name, rate)
		for range 10 {
			waits.Go(func() {
				assert.NoError(t, l.Wait(within(t, soon)))
				ends <- time.Since(began)
			})
		}
	}
	waits.Wait()
	close(ends)
	goes := 0
	for end := range ends {
		goes++
		require.LessOrEqual(t, float64(goes), float64(rate.Burst)+end.Seconds()*float64(rate.N), "%d after %v", goes, end)
	}
	require.Equal(t, 20, goes)
}

// A wait that cannot end before the deadline fails at once, and reserves nothing.
func TestRateLimiter_deadline(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	l := client.NewRateLimiter(name, hourly)
	mustAllow(t, l, 5)
	ctx := within(t, time.Hour-time.Minute)
	err := l.Wait(ctx)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "the context goes on")
	require.Regexp(t, `^latchkey: wait ".*": too many requests: its turn is in (1h|59m59\.\d+s)$`, err.Error())
	require.Zero(t, availableNow(t, client, name))
	require.NoError(t, ctx.Err())
}

// A wait that is given up gives back what nobody after it has reserved.
func TestRateLimiter_canceled_wait(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other := connect(t, server), connect(t, server)
	l := client.NewRateLimiter(name, hourly)
	mustAllow(t, l, 5)
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() { waits <- l.WaitN(ctx, 4) }()
	becomesAvailable(t, other, name, -4)
	awaitWaiting(t, client, latchkey.KindRate, 1)
	behind := mustReserve(t, other.NewRateLimiter(name, hourly), 1)
	cancel()
	err := rig.Await(t, soon, "the wait", waits)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	require.Empty(t, client.Waiting())
	becomesAvailable(t, other, name, -2)
	require.NoError(t, behind.Cancel(ctx), "the context has ended")
	require.NoError(t, behind.Cancel(ctx), "again, which does nothing")
	require.Equal(t, -1, availableNow(t, other, name))
	require.Equal(t, 2*time.Hour, mustReserve(t, l, 1).Delay().Round(time.Minute))
}

// Closing a client ends its waits, and gives them back.
func TestRateLimiter_closed(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other := connect(t, server), connect(t, server)
	l := client.NewRateLimiter(name, hourly)
	mustAllow(t, l, 5)
	waits := make(chan error, 1)
	go func() { waits <- l.WaitN(context.Background(), 4) }()
	becomesAvailable(t, other, name, -4)
	require.NoError(t, client.Close(within(t, soon)))
	require.ErrorIs(t, rig.Await(t, soon, "the wait", waits), latchkey.ErrClosed)
	require.Zero(t, availableNow(t, other, name))
	_, err := l.Allow(t.Context())
	require.ErrorIs(t, err, latchkey.ErrClosed)
}

// A rate that is set counts at once for all clients, until it is removed.
func TestRateLimiter_set_rate(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, other := connect(t, server), connect(t, server)
	l := client.NewRateLimiter(name, hourly)
	mustAllow(t, l, 5)
	set := latchkey.Rate{N: 3, Per: time.Hour, Burst: 3}
	require.NoError(t, other.NewRateLimiter(name, hourly).SetRate(t.Context(), set))
	require.Equal(t, -2, availableNow(t, other, name))
	require.Equal(t, time.Hour, mustReserve(t, l, 1).Delay().Round(time.Minute))
	_, err := l.AllowN(t.Context(), 4)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	require.ErrorContains(t, err, "4 requests are more than the burst of 3 that is set")
	o, err := other.Inspect(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, set, o.Rate)
	require.Greater(t, o.TTL, 29*24*time.Hour)
	require.NoError(t, l.SetRate(t.Context(), latchkey.Rate{}))
	require.Equal(t, 2*time.Hour, mustReserve(t, l, 1).Delay().Round(time.Minute))
}

// What cannot be used is refused before anything is sent.
func TestRateLimiter_bad_input(t *testing.T) {
	sendsNothing(t, func(client *latchkey.Client) {
		ctx := t.Context()
		per := func(r latchkey.Rate) error { return firstOf(client.NewRateLimiter("x", r).Allow(ctx)) }
		good := client.NewRateLimiter("x", latchkey.Rate{N: 10, Per: time.Second})
		for want, err := range map[string]error{
			`allow "x": a rate of 0 requests, want at least 1`:                       per(latchkey.Rate{Per: time.Second}),
			`allow "x": a rate of -1 requests, want at least 1`:                      per(latchkey.Rate{N: -1, Per: time.Second}),
			`allow "x": the period 0s of a rate is not between 1ms and 366 days`:     per(latchkey.Rate{N: 1}),
			`allow "x": the period 8785h of a rate is not between 1ms and 366 days`:  per(latchkey.Rate{N: 1, Per: 8785 * time.Hour}),
			`allow "x": a burst of -1 requests, want at least 1`:                     per(latchkey.Rate{N: 1, Per: time.Second, Burst: -1}),
			`allow "x": 11 requests are more than the burst of 10`:                   firstOf(good.AllowN(ctx, 11)),
			`wait "x": 11 requests are more than the burst of 10`:                    good.WaitN(ctx, 11),
			`reserve "x": 0 requests, want at least 1`:                               firstOf(good.ReserveN(ctx, 0)),
			`set rate "x": the period -1s of a rate is not between 1ms and 366 days`: good.SetRate(ctx, latchkey.Rate{N: 1, Per: -time.Second}),
			`allow "": the name is empty`:                                            firstOf(client.NewRateLimiter("", hourly).Allow(ctx)),
		} {
			want := "latchkey: " + strings.Replace(want, "\": ", "\": invalid argument: ", 1)
			require.ErrorIs(t, err, latchkey.ErrInvalid, want)
			assert.True(t, strings.HasPrefix(err.Error(), want), "%v, want %s", err, want)
		}
	})
}

// Observers learn of requests that went and of those that were refused.
func TestRateLimiter_events(t *testing.T) {
	t.Parallel()
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{})
	l := client.NewRateLimiter(rig.Name(t), hourly)
	_, err := l.AllowN(inCall(t.Context(), "goes"), 4)
	require.NoError(t, err)
	e := next(latchkey.EventOpened)
	require.Equal(t, []any{latchkey.KindRate, 4, "goes"}, []any{e.Kind, e.Count, callOf(e)})
	_, err = l.AllowN(inCall(t.Context(), "refused"), 2)
	require.NoError(t, err)
	e = next(latchkey.EventGaveUp)
	require.Equal(t, []any{2, "refused"}, []any{e.Count, callOf(e)})
	require.ErrorIs(t, e.Err, latchkey.ErrNotAcquired)
}

// limiterThrough makes every kind of call.
func limiterThrough(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	l := client.NewRateLimiter(name, hourly)
	mustAllow(t, l, 5)
	require.NoError(t, mustReserve(t, l, 1).Cancel(t.Context()))
	require.NoError(t, l.SetRate(t.Context(), hourly))
	require.ErrorIs(t, l.Wait(within(t, soon)), latchkey.ErrNotAcquired)
	_, err := l.Inspect(t.Context())
	require.NoError(t, err)
}

func aboutRateLimiters(t *testing.T, open func() *latchkey.Client) []question {
	t.Helper()
	l := open().NewRateLimiter("limiter", hourly)
	mustAllow(t, l, 5)
	answered := func(err error) error {
		if err == nil || errors.Is(err, latchkey.ErrNotAcquired) {
			return errFree
		}
		return err
	}
	return []question{
		{"RateLimiter Allow", func(ctx context.Context) error { return answered(firstOf(l.Allow(ctx))) }, errFree},
		{"RateLimiter Wait", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			err := l.Wait(ctx)
			if errors.Is(err, latchkey.ErrUnavailable) {
				return err
			}
			return answered(err)
		}, errFree},
		{"RateLimiter Inspect", func(ctx context.Context) error { return answered(firstOf(l.Inspect(ctx))) }, errFree},
	}
}
