package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// Clients that only wait are cheap: each polls once per poll ceiling, and pings its second
// connection every two seconds.
func TestIdleWaiters_cost(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats)
	server, name := rig.Fresh(t), "wanted"
	if server.Clustered() {
		t.Skip("each node of a cluster has connections of its own")
	}
	admin := rig.NewAdmin(t, server)
	hold := mustLock(t, connect(t, server).NewLock(name))
	const clients = 4
	all := rig.Goroutines(t)
	for i := range clients {
		lock := connect(t, server).NewLock(name)
		for range 3 {
			all.Go(func() {
				assert.NoError(t, lock.Do(within(t, time.Minute), func(context.Context) error { return nil }))
			})
		}
		queued(t, admin, name, int64(i+1))
	}
	err := rig.InTime(t, func(int) error {
		const during = 4 * time.Second
		monitor, start := admin.Watch(), time.Now()
		rest(during)
		commands, took := monitor.Stop(), time.Since(start)
		count := map[string]float64{}
		for _, command := range commands {
			word, _, _ := strings.Cut(command, " ")
			count[strings.Trim(word, `"`)] += 1 / took.Seconds()
		}
		t.Logf("commands a second: %v", count)
		if each := (count["PING"] + count["EVALSHA"] - 1.5) / clients; each > 1.3 { // without the holder and the admin
			return fmt.Errorf("%.2f commands a second for each client", each)
		}
		return nil
	})
	require.NoError(t, err)
	mustUnlock(t, hold)
	all.Wait()
}
