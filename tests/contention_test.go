package tests

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// contest lets four clients of four goroutines each contend. LATCHKEY_TEST_CONTENTION sets the
// minimum number of passes.
func (l contended) contest(t *testing.T, servers []*rig.Server) *contest {
	t.Helper()
	const clients, goroutines = 4, 4
	name := rig.Name(t)
	c := &contest{lasts: rig.Lasting(time.Second / 2), passes: max(contendedPasses(t), 32)}
	for i := range clients {
		var each []*latchkey.Client
		for _, server := range servers {
			each = append(each, connect(t, server))
		}
		c.contenders = append(c.contenders, l.contenders(each, name, fmt.Sprint("client ", i), goroutines)...)
	}
	c.dump = dumpOf(t, servers, name)
	return c
}

func contendedPasses(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("LATCHKEY_TEST_CONTENTION")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, "LATCHKEY_TEST_CONTENTION")
	return n
}

// dumpOf returns a function that dumps what the servers store for a lock, and its channels.
func dumpOf(t *testing.T, servers []*rig.Server, name string) func() any {
	t.Helper()
	var admins []*rig.Admin
	for _, server := range servers {
		admins = append(admins, rig.NewAdmin(t, server))
	}
	return func() any {
		var all []any
		for _, admin := range admins {
			all = append(all, admin.Dump(name), admin.Channels(name))
		}
		return all
	}
}

// freshServers starts n servers for this test only.
func freshServers(t *testing.T, n int) (servers []*rig.Server) {
	t.Helper()
	for range n {
		servers = append(servers, rig.Fresh(t))
	}
	return servers
}

// Several goroutines of several clients contend all the time: there are never too many inside,
// tokens grow, and no waiter is forgotten.
func TestContention_excludes_and_strands_nobody(t *testing.T) {
	t.Parallel()
	for _, l := range contendedKinds() {
		t.Run(l.name, func(t *testing.T) {
			servers := []*rig.Server{rig.Shared()}
			if l.servers > 1 {
				rig.Need(t, rig.Single) // several of them start quickly
				servers = freshServers(t, l.servers)
			}
			c := l.contest(t, servers)
			c.run(t)
			t.Log(c)
			if !l.shown {
				c.targetFairness(t, 3*time.Duration(len(c.contenders))*turn)
			}
		})
	}
}

const (
	stopFor   = 30 * time.Millisecond
	stopEvery = 200 * time.Millisecond
)

// pauseBriefly pauses a server for stopFor.
func pauseBriefly(t *testing.T, server *rig.Server) {
	t.Helper()
	server.Pause(t)
	rest(stopFor)
	server.Resume(t)
}

// The same while each server pauses for 30 ms five times a second.
func TestContention_on_servers_that_stop(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	rig.Need(t, rig.Process)
	for _, l := range contendedKinds() {
		t.Run(l.name, func(t *testing.T) {
			servers := freshServers(t, l.servers)
			c := l.contest(t, servers)
			c.every = stopEvery / time.Duration(len(servers))
			c.disturb = func(n int) { pauseBriefly(t, servers[n%len(servers)]) }
			c.run(t)
			t.Log(c)
			if !l.shown {
				c.targetFairness(t, 3*time.Duration(len(c.contenders))*turn+2*stopFor)
			}
		})
	}
}
