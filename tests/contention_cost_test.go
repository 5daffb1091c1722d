package tests

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// hotLockCommands is how many commands per second a hot lock on one client may cost the server,
// however often it changes hands there: one per turn, and renewals. If nobody happens to be in line
// at the end of a turn, it is two, so one try in three has to be below.
const hotLockCommands = 150

// Sixteen goroutines of one client contend all the time. MONITOR counts the commands of the server,
// because INFO cannot distinguish the SET of a mutex from one in a script.
func TestHotClientCostsFewCommands(t *testing.T) {
	rig.Need(t, rig.Single, rig.Stats)
	for _, l := range hotKinds() {
		t.Run(l.name, func(t *testing.T) {
			servers, name := freshServers(t, l.servers), "hot"
			var clients []*latchkey.Client
			for _, server := range servers {
				clients = append(clients, connect(t, server))
			}
			contenders := l.contenders(clients, name, "the client", 16/len(l.roles(clients, name)))
			passOnce(t, contenders)
			err := rig.InTime(t, func(int) error {
				perSecond := 0.0
				for range 3 {
					c := &contest{contenders: contenders, lasts: rig.Lasting(time.Second / 2), passes: 100, dump: dumpOf(t, servers, name)}
					perSecond = c.commandsPerSecond(t, servers)
					if perSecond <= hotLockCommands || slices.Contains(costlyKinds, l.name) {
						return nil
					}
				}
				return fmt.Errorf("%.0f commands a second", perSecond)
			})
			require.NoError(t, err)
		})
	}
}

// commandsPerSecond runs a contest, and returns how many commands a second it costs each server.
func (c *contest) commandsPerSecond(t *testing.T, servers []*rig.Server) float64 {
	t.Helper()
	var monitors []*rig.Monitor
	for _, server := range servers {
		monitors = append(monitors, rig.NewAdmin(t, server).Watch())
	}
	c.run(t)
	sent := 0
	for _, monitor := range monitors {
		sent += len(monitor.Stop())
	}
	perSecond := float64(sent) / float64(len(servers)) / c.took.Seconds()
	t.Logf("%.0f commands a second to a server for %v", perSecond, c)
	assert.Less(t, float64(sent)/float64(c.total.Load()*int64(len(servers))), 7.0, "commands for each pass, of a MultiLock of two")
	return perSecond
}

// costlyKinds cost more: a MultiLock and a RedLock are not passed on, the sides of a ReadWriteLock
// take turns, readers leave when no other is inside, and a semaphore needs a release and an
// acquisition per turn.
var costlyKinds = []string{"MultiLock", "RedLock", "ReadWriteLock", "ReadLock", "Semaphore"}

// hotKinds are all contended kinds except those that a client does not pass on inside itself: fair
// locks, whose order the server keeps, fenced locks, whose tokens it counts, and permits with ids.
// Readers without writers are added.
func hotKinds() []contended {
	all := slices.DeleteFunc(contendedKinds(), func(l contended) bool {
		return l.queued || l.name == fencedKind.name || l.name == "PermitSemaphore"
	})
	return append(all, contended{name: "ReadLock", servers: 1, roles: func(c []*latchkey.Client, name string) []role {
		return sides(c, name)[:1]
	}})
}

// passOnce makes the servers load the scripts.
func passOnce(t *testing.T, contenders []contender) {
	t.Helper()
	for _, p := range contenders {
		got, err := p.acquire(within(t, soon))
		require.NoError(t, err)
		require.NoError(t, got.release(t.Context()))
	}
}
