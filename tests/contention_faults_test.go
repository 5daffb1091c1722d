package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// faultLease is for how long somebody who is gone is waited for, and long enough for a busy machine
// to renew what a grant has given so. faultPoll is for how long messages are relied on.
const (
	faultLease = 1500 * time.Millisecond
	faultPoll  = 300 * time.Millisecond
)

var faultOptions = latchkey.Options{
	Lease: 6 * time.Second, StaleWaiterTimeout: faultLease, PollCeiling: faultPoll,
}

// trouble is what happens again and again to those who contend.
type trouble struct {
	taps   []*rig.Tap // on the way of all, one for each server
	name   string
	admins []*rig.Admin
	old    []map[string]string // queues as they stood before
}

func newTrouble(t *testing.T, l contended) (x *trouble, servers []*rig.Server) {
	t.Helper()
	servers = []*rig.Server{rig.Shared()}
	if l.servers > 1 {
		servers = freshServers(t, l.servers)
	}
	x = &trouble{name: rig.Name(t)}
	for _, server := range servers {
		x.taps = append(x.taps, rig.NewTap(t, server))
		x.admins = append(x.admins, rig.NewAdmin(t, server))
	}
	return x, servers
}

// queuePrefixes are what the names of keys begin with in which waiters stand in line, or what they
// have is kept for them.
var queuePrefixes = []string{
	"latchkey_queue:", "redisson_lock_queue:", "redisson_lock_timeout:", "latchkey_fair:", "latchkey_rw_writers:", "latchkey_sc_reserve:",
}

// queues are the keys of a server in which waiters stand in line.
func (x *trouble) queues(admin *rig.Admin) (keys []string) {
	for _, key := range admin.KeysOf(x.name) {
		if slices.ContainsFunc(queuePrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// lose deletes what stands in line, as a failover to a replica that is behind may do.
func (x *trouble) lose(int) {
	for _, admin := range x.admins {
		for _, key := range x.queues(admin) {
			admin.Do("DEL", key)
		}
	}
}

// remember and bring back in turn what stood in line: owners that are used up, and not those
// who have come since.
func (x *trouble) goBack(n int) {
	if n%2 == 0 {
		x.old = nil
	}
	for i, admin := range x.admins {
		if n%2 == 0 {
			old := map[string]string{}
			for _, key := range x.queues(admin) {
				old[key] = admin.Text("DUMP", key)
			}
			x.old = append(x.old, old)
			continue
		}
		for key, value := range x.old[i] {
			if value != "" {
				admin.Do("RESTORE", key, "60000", value, "REPLACE")
			}
		}
	}
}

func (x *trouble) dropMessages(drop bool) {
	for _, tap := range x.taps {
		tap.DropMessages(drop)
	}
}

func (x *trouble) breakSubscriptions(int) {
	for _, tap := range x.taps {
		tap.CutSubscribers()
	}
}

// Something goes wrong all the time with messages, connections or the line of waiters: never
// too many inside, tokens grow, and nobody is forgotten.
func TestContention_in_trouble(t *testing.T) {
	rig.Need(t, rig.Single, rig.Stats) // the embedded server cannot RESTORE
	troubles := map[string]func(x *trouble) func(n int){
		"messages are lost":      func(x *trouble) func(int) { x.dropMessages(true); return func(int) {} },
		"some messages are lost": func(x *trouble) func(int) { return func(n int) { x.dropMessages(n%2 == 0) } },
		"subscriptions break":    func(x *trouble) func(int) { return x.breakSubscriptions },
		"the line is lost":       func(x *trouble) func(int) { return x.lose },
		"an old line comes back": func(x *trouble) func(int) { return x.goBack },
	}
	for what, cause := range troubles {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for _, l := range contendedKinds() {
				t.Run(l.name, func(t *testing.T) {
					x, servers := newTrouble(t, l)
					c := &contest{lasts: rig.Lasting(2 * time.Second), passes: contendedPasses(t), dump: dumpOf(t, servers, x.name)}
					for i := range 3 {
						var clients []*latchkey.Client
						for n, server := range servers {
							clients = append(clients, connectVia(t, server, x.taps[n].Addr(), faultOptions))
						}
						c.parties = append(c.parties, l.parties(clients, x.name, fmt.Sprint("client ", i), 2)...)
					}
					c.every, c.disturb, c.punctual = 50*time.Millisecond, cause(x), faultLease/5
					c.run(t)
					t.Log(c)
					assert.Less(t, c.tally.Longest(), soon)
					rig.Target(t, c.tally.Longest() < 6*faultLease, "the longest wait %v, want a period for each who contends, %v",
						c.tally.Longest(), 6*faultLease)
				})
			}
		})
	}
}
