package tests

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// permitContest lets clients contend for permits, each with the given number of goroutines.
func permitContest(t *testing.T, permits int, hold time.Duration, goroutines ...int) (c *contest, name string) {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	c = &contest{hold: hold, passes: max(contendedPasses(t), 20), dump: dumpOf(t, []*rig.Server{server}, name)}
	for i, n := range goroutines {
		s := connect(t, server).NewSemaphore(name)
		_, err := s.TrySetPermits(t.Context(), permits)
		require.NoError(t, err)
		p := contender{name: fmt.Sprint("client ", i), goroutines: n, acquire: taking(s), weight: whole / int32(permits)}
		c.contenders = append(c.contenders, p)
	}
	return c, name
}

// Several goroutines of several clients contend for permits all the time: there are never too many
// inside, and no waiter is forgotten. The test prints the longest wait next to what it would be if
// the clients took turns: one turn for each client, and the time for which a permit is held.
func TestPermitPassing_for_many_clients(t *testing.T) {
	t.Parallel()
	for _, permits := range []int{1, 3} {
		for _, hold := range []time.Duration{0, 20 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d, hold %v", permits, hold), func(t *testing.T) {
				c, _ := permitContest(t, permits, hold, 4, 4, 4, 4)
				c.lasts = sharesFor(t, time.Second/2)
				late := rig.WatchLateness(nil)
				c.run(t)
				bound := time.Duration(len(c.contenders))*turn + hold
				bound = max(bound, time.Duration(len(c.waits))*hold/time.Duration(permits)) // each passes once
				t.Logf("the longest wait %v, to be compared with %v, this process was %v late: %v",
					c.tally.Longest().Round(time.Millisecond), bound, late().Round(time.Millisecond), c)
				c.targetFairness(t, 3*bound)
			})
		}
	}
}

// A lone goroutine of one client contends for permits with four of another. Clients take turns
// whatever their number of goroutines; the test prints the result for each goroutine.
func TestPermitPassing_beside_a_lone_goroutine(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	for _, permits := range []int{1, 3} {
		for _, hold := range []time.Duration{0, 20 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d, hold %v", permits, hold), func(t *testing.T) {
				c, _ := permitContest(t, permits, hold, 1, 4)
				c.lasts = sharesFor(t, time.Second/2)
				c.run(t)
				share, _ := c.share(0)
				t.Logf("the lone one has %.3f of all passes, %.2f times what another has: %v", share, 4*share/(1-share), c)
				bound := 3 * max(2*turn+hold, 5*hold/time.Duration(permits))
				rig.Target(t, c.tally.Longest() <= bound, "the longest wait %v, want %v at most", c.tally.Longest(), bound)
			})
		}
	}
}

// pollForPermit takes a permit if one is available.
const pollForPermit = `if tonumber(redis.call('get', KEYS[1]) or 0) > 0 then return redis.call('decr', KEYS[1]) end return -1`

// pollingForPermits is a program that knows only the number of permits and publishes nothing. It
// polls again after a pause.
func pollingForPermits(client rueidis.Client, name string, pause time.Duration) acquire {
	poll := rueidis.NewLuaScript(pollForPermit)
	release := func(ctx context.Context) error {
		return client.Do(ctx, client.B().Incr().Key(name).Build()).Error()
	}
	return func(ctx context.Context) (taken, error) {
		for {
			rest(pause)
			left, err := poll.Exec(ctx, client, []string{name}, nil).AsInt64()
			if err != nil || left >= 0 {
				return taken{release: release}, err
			}
		}
	}
}

// This library and a program that only polls, and whose releases publish nothing, contend for
// permits: both go on.
func TestPermitPassing_beside_who_polls(t *testing.T) {
	t.Parallel()
	for _, permits := range []int{1, 3} {
		for _, hold := range []time.Duration{0, 20 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d, hold %v", permits, hold), func(t *testing.T) {
				c, name := permitContest(t, permits, hold, 4)
				c.lasts, c.both = sharesFor(t, time.Second/2), true
				other := pollingForPermits(rig.Shared().Raw(t), name, max(hold, 5*time.Millisecond))
				c.contenders = append(c.contenders, contender{name: "who polls", goroutines: 1, acquire: other, weight: c.contenders[0].weight, polls: true})
				c.run(t)
				t.Log(c)
			})
		}
	}
}

// releasePermit gives a permit back and publishes the number of available permits.
const releasePermit = `return redis.call(ARGV[1], ARGV[2], redis.call('incr', KEYS[1]))`

// hearingOfPermits is a program that takes permits as Redisson does: it subscribes, and tries again
// after each message and right after a release of its own.
func hearingOfPermits(t *testing.T, name string) acquire {
	server, client := rig.Shared(), rig.Shared().Raw(t)
	channel := semaphoreChannelOf(name)
	wake := make(chan struct{}, 1)
	listenRaw(t, server, channel, func() {
		select {
		case wake <- struct{}{}:
		default: // a wake-up is already pending
		}
	})
	try, give := rueidis.NewLuaScript(pollForPermit), rueidis.NewLuaScript(releasePermit)
	release := func(ctx context.Context) error {
		return give.Exec(ctx, client, []string{name}, []string{server.PublishCommand(), channel}).Error()
	}
	return func(ctx context.Context) (taken, error) {
		for {
			left, err := try.Exec(ctx, client, []string{name}, nil).AsInt64()
			if err != nil || left >= 0 {
				return taken{release: release}, err
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return taken{}, ctx.Err()
			}
		}
	}
}

// This library and a program that gets messages, and knows nothing of turns, contend for permits:
// both get their share.
func TestPermitPassing_beside_who_hears(t *testing.T) {
	t.Parallel()
	for _, clients := range []int{1, 4} {
		for _, hold := range []time.Duration{0, 20 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d clients, hold %v", clients, hold), func(t *testing.T) {
				c, name := permitContest(t, 2, hold, slices.Repeat([]int{4}, clients)...)
				c.lasts, c.both = sharesFor(t, time.Second/2), true
				c.contenders = append(c.contenders, contender{name: "who hears", goroutines: 4, acquire: hearingOfPermits(t, name), weight: c.contenders[0].weight})
				c.run(t)
				share, fair := c.share(clients)
				t.Logf("who hears has %.3f of all passes, its fair share is %.3f: %v", share, fair, c)
				odds := share / (1 - share) * (1 - fair) / fair
				rig.Target(t, odds >= 0.5 && odds <= 2, "who hears passes %.2f times as often as one of this library: want 2:1 at most either way", odds)
			})
		}
	}
}
