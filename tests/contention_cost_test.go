package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// hotLockCommands is what a hot lock on one client may cost the server in a second, however
// often it changes hands there: one for each turn, renewals, and some to spare.
const hotLockCommands = 150

// Sixteen goroutines of one client want a lock all the time. What the server has of it is
// counted by MONITOR: INFO cannot tell the SET of a mutex from one in a script.
func TestHotLockOfOneClientCostsFewCommands(t *testing.T) {
	rig.Need(t, rig.Stats)
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Fresh(t), "hot"
		admin := rig.NewAdmin(t, server)
		lock := k.open(connect(t, server), name)
		mustUnlock(t, mustLock(t, lock))
		c := &contest{
			lasts: rig.Lasting(2 * time.Second), dump: dumpOf(t, []*rig.Server{server}, name),
			parties: []party{{name: "the client", goroutines: 16, acquire: locking(lock)}},
		}
		monitor := admin.Watch()
		c.run(t)
		perSecond := float64(len(monitor.Stop())) / c.took.Seconds()
		t.Logf("%.0f commands a second for %v", perSecond, c)
		assert.Less(t, perSecond/(float64(c.total.Load())/c.took.Seconds()), 3.5, "commands for each pass")
		rig.Target(t, perSecond <= hotLockCommands, "%.0f commands a second, want %d at most", perSecond, hotLockCommands)
	}, messages, unqueued)
}

// unqueued leaves out kinds whose order the server keeps: each of their passes is its own.
func unqueued(k kind) bool { return !k.queued }
