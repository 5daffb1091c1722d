package tests

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

func TestBarrierGenerations(t *testing.T) {
	server := rig.Shared()
	const parties, generations = 12, 50
	name := rig.Name(t)
	var mu sync.Mutex
	arrived, lasts := map[int]int{}, map[int]int{}
	var numbers [parties][]int64
	var all sync.WaitGroup
	clients := []*latchkey.Client{connect(t, server, patient), connect(t, server, patient), connect(t, server, patient), connect(t, server, patient)}
	start := time.Now()
	for i := range parties {
		b := clients[i%len(clients)].NewBarrier(name, parties)
		all.Go(func() {
			for g := range generations {
				mu.Lock()
				arrived[g]++
				mu.Unlock()
				a, err := b.Await(within(t, time.Minute))
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				assert.Equal(t, parties, arrived[g], "nobody passes before all have arrived")
				if a.Last() {
					lasts[g]++
				}
				numbers[i] = append(numbers[i], a.Generation)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%v for each generation", time.Since(start)/generations)
	for g := range generations {
		require.Equal(t, 1, lasts[g])
	}
	for i := range parties {
		require.Equal(t, numbers[0], numbers[i])
	}
}
