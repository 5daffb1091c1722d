package tests

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The queue of other clients, and of other kinds, is never above twice the number of live callers.
func TestBreakWithdrawals(t *testing.T) {
	server := rig.Shared()
	notInCluster(t, "links")
	kinds := map[string]struct {
		open   func(c *latchkey.Client, name string) acquire
		take   func(t *testing.T, c *latchkey.Client, name string)
		queued func(admin *rig.Admin, name string) int64
	}{
		"fair lock": {func(c *latchkey.Client, name string) acquire { return locking(c.NewFairLock(name)) },
			func(t *testing.T, c *latchkey.Client, name string) { mustLock(t, c.NewFairLock(name)) },
			func(a *rig.Admin, name string) int64 { return a.Int("LLEN", "redisson_lock_queue:{"+name+"}") }},
		"fair permits": {fairPermitsOf,
			func(t *testing.T, c *latchkey.Client, name string) {
				s := c.NewFairSemaphore(name)
				_, err := s.TrySetPermits(t.Context(), 1)
				require.NoError(t, err)
				require.NoError(t, firstOf(s.Acquire(t.Context())))
			},
			func(a *rig.Admin, name string) int64 { return a.Int("ZCARD", permitQueueOf(name)) }},
	}
	for kind, k := range kinds {
		for form, callers := range map[string]int{"opened": 300, "opened 2 ms": 300, "borrowed": 300, "borrowed 100": 100} {
			t.Run(kind+", "+form, func(t *testing.T) {
				delay := 10 * time.Millisecond
				if form == "opened 2 ms" { // as R4 has it
					delay = time.Millisecond
				}
				name, admin := rig.Name(t), rig.NewAdmin(t, server)
				link := rig.NewLink(t, server)
				var client *latchkey.Client
				if strings.HasPrefix(form, "opened") {
					client = connectVia(t, server, link.Addr())
				} else {
					client = lent(t, server.Options(link.Addr()), latchkey.Options{})
				}
				mustUnlock(t, mustLock(t, client.NewLock(name+"warm")))
				k.take(t, connect(t, server), name)
				link.DelayRequests(delay)
				link.DelayReplies(delay)
				stop := callAgain(t, k.open(client, name), callers, 200*time.Millisecond, 210*time.Millisecond, new(atomic.Int64))
				defer stop()
				most, began := int64(0), time.Now()
				var seconds []int64
				for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					n := k.queued(admin, name)
					if most = max(most, n); time.Since(began) > time.Duration(len(seconds)+1)*time.Second {
						seconds = append(seconds, n)
					}
				}
				fmt.Println(kind, form, "at most", most, "queued of", callers, "each second:", seconds)
				require.LessOrEqual(t, most, int64(2*callers))
			})
		}
	}
}
