package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

func barrierChannelOf(name string) string {
	if strings.Contains(name, "{") {
		return "latchkey_barrier:" + name
	}
	return "latchkey_barrier:{" + name + "}"
}

// With these options a party learns what happens by messages only, or by polls: its renewals are an
// hour apart.
var (
	onlyMessages = latchkey.Options{Lease: 3 * time.Hour, Tuning: latchkey.Tuning{PollCeiling: 2 * time.Hour}, RetryBudget: soon}
	onlyPolls    = latchkey.Options{Lease: 3 * time.Hour, Tuning: latchkey.Tuning{PollCeiling: pollCeiling}, RetryBudget: soon}
)

// arrival is the outcome of an Await in the background.
type arrival struct {
	latchkey.Arrival
	err error
}

func arriveInBackground(ctx context.Context, b *latchkey.Barrier, options ...latchkey.WaitOption) <-chan arrival {
	done := make(chan arrival, 1)
	go func() {
		a, err := b.Await(ctx, options...)
		done <- arrival{a, err}
	}()
	return done
}

// atBarrier waits until n parties wait, according to the server.
func atBarrier(t testing.TB, b *latchkey.Barrier, n int) latchkey.BarrierState {
	t.Helper()
	var s latchkey.BarrierState
	rig.Eventually(t, soon, "the parties wait", func() (err error) {
		if s, err = b.State(t.Context()); err == nil && s.Waiting != n {
			err = fmt.Errorf("%d of %d wait", s.Waiting, n)
		}
		return err
	})
	return s
}

// completes checks that the barrier works: its number of parties arrives, and all go on.
func completes(t testing.TB, b *latchkey.Barrier) {
	t.Helper()
	var all []<-chan arrival
	for range b.Parties() {
		all = append(all, arriveInBackground(within(t, soon), b))
	}
	places := map[int]bool{}
	var generation int64
	for _, each := range all {
		a := rig.Await(t, soon, "a party", each)
		require.NoError(t, a.err)
		if generation == 0 {
			generation = a.Generation
		}
		assert.Equal(t, generation, a.Generation)
		places[a.Index] = true
	}
	assert.Len(t, places, b.Parties())
}

// The state in Redis and the messages are exactly these.
func TestGoldenBarrier(t *testing.T) {
	for _, name := range []string{rig.Name(t), "{" + rig.Name(t) + "}phase"} {
		t.Run(name, func(t *testing.T) {
			server := rig.Shared()
			admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, barrierChannelOf(name))
			tag := strings.TrimPrefix(barrierChannelOf(name), "latchkey_barrier:")
			b := connect(t, server).NewBarrier(name, 2)
			first := arriveInBackground(within(t, soon), b)
			state := atBarrier(t, b, 1)
			generation := fmt.Sprint(state.Generation)
			hash := admin.Dump(name)[name]
			assert.Equal(t, map[string]string{"generation": generation, "parties": "2", "arrived": "1"}, hash.Hash)
			assert.Greater(t, hash.TTL, 10*time.Minute)
			waiting := admin.Dump(name)["latchkey_barrier_waiting:"+tag]
			require.Len(t, waiting.Members, 1)
			assert.True(t, strings.HasPrefix(waiting.Members[0], state.Who[0].Owner.String()), waiting.Members[0])
			assert.Greater(t, waiting.TTL, 10*time.Minute)
			_, err := b.Await(within(t, soon))
			require.NoError(t, err)
			require.NoError(t, rig.Await(t, soon, "the first", first).err)
			assert.Equal(t, "1", rig.Await(t, soon, "the message that all have arrived", heard))
			found := admin.Dump(name)
			assert.Equal(t, map[string]string{"generation": generation, "parties": "2", "arrived": "0"}, found[name].Hash)
			assert.NotContains(t, found, "latchkey_barrier_waiting:"+tag)
			assert.Contains(t, fmt.Sprint(found["latchkey_barrier_past:"+tag].Members), generation+" done ")

			first = arriveInBackground(within(t, soon), b)
			next := atBarrier(t, b, 1)
			assert.Greater(t, next.Generation, state.Generation)
			require.NoError(t, b.Reset(t.Context()))
			assert.Equal(t, "0", rig.Await(t, soon, "the message that it is broken", heard))
			requireBroken(t, rig.Await(t, soon, "the first", first).err, "it was reset")
			assert.Empty(t, heard)
			for key, entry := range admin.Dump(name) {
				assert.Positive(t, entry.TTL, "%s expires", key)
				assert.LessOrEqual(t, entry.TTL, 20*time.Minute, key)
			}
		})
	}
}

// In each generation nobody goes on before all have arrived. All get the same generation number and
// different places.
func TestBarrierGenerations(t *testing.T) {
	for what, options := range map[string]latchkey.Options{"by message": onlyMessages, "all messages dropped": onlyPolls} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			tap := rig.NewTap(t, server)
			tap.DropMessages(what != "by message")
			parties, generations := 12, rig.Sized(50)
			if what != "by message" {
				generations = 3
			}
			var clients []*latchkey.Client
			for range 4 {
				clients = append(clients, connectVia(t, server, tap.Addr(), options))
			}
			var mu sync.Mutex
			arrived, places := make([]int, generations), make([]map[int]bool, generations)
			numbers := make([]map[int64]bool, generations)
			all := rig.Goroutines(t)
			start := time.Now()
			for i := range parties {
				b := clients[i%len(clients)].NewBarrier(name, parties)
				all.Go(func() {
					var last int64
					for g := range generations {
						mu.Lock()
						arrived[g]++
						mu.Unlock()
						a, err := b.Await(within(t, time.Minute))
						if !assert.NoError(t, err) {
							return
						}
						mu.Lock()
						assert.Equal(t, parties, arrived[g], "nobody goes on before all have arrived")
						if places[g] == nil {
							places[g], numbers[g] = map[int]bool{}, map[int64]bool{}
						}
						assert.False(t, places[g][a.Index], "a place twice")
						assert.Equal(t, a.Index == parties-1, a.Last())
						places[g][a.Index], numbers[g][a.Generation] = true, true
						mu.Unlock()
						assert.Greater(t, a.Generation, last)
						last = a.Generation
					}
				})
			}
			all.Wait()
			t.Logf("%d parties: %v for each generation", parties, time.Since(start)/time.Duration(generations))
			for g := range generations {
				assert.Len(t, places[g], parties)
				assert.Len(t, numbers[g], 1)
			}
		})
	}
}

// With more callers than parties, exactly the number of parties goes on in each generation. At the
// end all callers are canceled at an arbitrary time. A caller to which a busy machine does not
// answer then knows that it does not know.
func TestBarrierWithMoreCallersThanParties(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	const parties, callers = 3, 20
	enough := max(rig.Sized(100), 20)
	ctx, cancel := context.WithCancel(within(t, 2*time.Minute))
	defer cancel()
	var mu sync.Mutex
	seen, unknown := map[int64]int{}, 0
	var barriers [callers]*latchkey.Barrier
	for i := range barriers {
		barriers[i] = connect(t, server, onlyMessages).NewBarrier(name, parties)
	}
	all := rig.Goroutines(t)
	for _, b := range barriers {
		all.Go(func() {
			for ctx.Err() == nil {
				a, err := b.Await(ctx)
				mu.Lock()
				switch {
				case err == nil:
					seen[a.Generation]++
				case errors.Is(err, latchkey.ErrUnknownOutcome):
					unknown++
				}
				if len(seen) >= enough {
					cancel()
				}
				mu.Unlock()
				if err != nil {
					assert.Error(t, ctx.Err(), "%v", err)
				}
			}
		})
	}
	all.Wait()
	assert.GreaterOrEqual(t, len(seen), enough)
	for generation, n := range seen {
		assert.LessOrEqual(t, n, parties, generation)
		unknown -= parties - n
	}
	assert.GreaterOrEqual(t, unknown, 0, seen)
}

func TestBarrierOfOne(t *testing.T) {
	b := connect(t, rig.Shared()).NewBarrier(rig.Name(t), 1)
	for range 3 {
		a, err := b.Await(t.Context())
		require.NoError(t, err)
		assert.True(t, a.Last())
		assert.Zero(t, a.Index)
	}
}

// A generation costs no more than docs/reference/barrier.md says.
func TestBarrierCost(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, heard := rig.NewAdmin(t, server), subscribeRaw(t, server, barrierChannelOf(name))
	tap := rig.NewTap(t, server)
	const parties, generations = 5, 20
	var clients []*latchkey.Client
	for range parties {
		clients = append(clients, connectVia(t, server, tap.Addr(), onlyMessages))
	}
	round := func() {
		all := rig.Goroutines(t)
		for _, c := range clients {
			all.Go(func() { _, err := c.NewBarrier(name, parties).Await(within(t, soon)); assert.NoError(t, err) })
		}
		all.Wait()
	}
	round()
	quiet(t, tap)
	rig.Await(t, soon, "the message", heard)
	tap.Forget()
	for range generations {
		round()
		rig.Await(t, soon, "the message", heard)
	}
	n := len(tap.Executed(rig.Both(rig.Mentions(name), rig.Named("EVALSHA"))))
	each := float64(n) / generations / parties
	t.Logf("%.2f scripts for each Await", each)
	assert.LessOrEqual(t, each, 4.0)
	assert.Empty(t, heard, "one message for each generation")
	assert.LessOrEqual(t, len(admin.KeysOf(name)), 3+parties)
}

// The rights listed in docs/reference/barrier.md suffice.
func TestBarrierPermissions(t *testing.T) {
	rig.Need(t, rig.Settings)
	server, ctx := rig.Fresh(t), t.Context()
	grant(t, server, "barriers", `
		-@all +evalsha +eval +subscribe +ping &latchkey:beat:*
		+get +set +del +exists +hmget +hset +hdel +pexpire +pttl +time +publish
		+zadd +zcard +zpopmin +zrange +zrangebyscore +zrem +zscore
		~job ~latchkey_barrier_*:{job} ~latchkey_op:{job}:*
		&latchkey_barrier:{job}`)
	client, err := latchkey.Connect(ctx, server.URLAs("barriers", "secret"),
		latchkey.Options{Label: latchkey.NoLabel, Lease: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close(within(t, soon))) })
	b := client.NewBarrier("job", 2)
	first := arriveInBackground(within(t, soon), b)
	before := atBarrier(t, b, 1).Who[0].Lease
	rig.Eventually(t, soon, "it is renewed", func() error {
		left := atBarrier(t, b, 1).Who[0].Lease
		if left <= before {
			before = left
			return fmt.Errorf("%v left", left)
		}
		return nil
	})
	_, err = b.Await(within(t, soon))
	require.NoError(t, err)
	require.NoError(t, rig.Await(t, soon, "the first", first).err)
	_ = refused(t, func(wait latchkey.WaitOption) error { _, err := b.Await(ctx, wait); return err })
	require.NoError(t, b.Reset(ctx))
	completes(t, b)
	nothingDenied(t, rig.NewAdmin(t, server))
}

// A party that gives up reports only that: its lease causes no events of a hold.
func TestBarrierTellsOfItsAwaitsOnly(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{Lease: lease})
	b := client.NewBarrier(rig.Name(t), 2)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := arriveInBackground(ctx, b)
	atBarrier(t, b, 1)
	rest(lease / 2) // it is renewed during this time
	cancel()
	require.Error(t, rig.Await(t, soon, "the end of the wait", waiting).err)
	e := next(latchkey.EventGaveUp, latchkey.EventRenewed, latchkey.EventUndone, latchkey.EventReleased, latchkey.EventLost)
	assert.Equal(t, latchkey.EventGaveUp, e.Type)
}
