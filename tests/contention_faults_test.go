package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// faultLease is how long waiters wait for one that is gone. It is long enough for a busy machine to
// renew a granted lock. faultPoll is how long waiters rely on messages.
const (
	faultLease = 1500 * time.Millisecond
	faultPoll  = 300 * time.Millisecond
)

var faultOptions = latchkey.Options{
	Lease: 6 * time.Second, Tuning: latchkey.Tuning{StaleWaiterTimeout: faultLease, PollCeiling: faultPoll},
}

// trouble disturbs contending clients again and again.
type trouble struct {
	taps   []*rig.Tap // between the clients and each server
	name   string
	admins []*rig.Admin
	old    []map[string]string // an earlier state of the queues
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

// queuePrefixes are the prefixes of the keys that store queues of waiters, or what is kept for
// waiters.
var queuePrefixes = []string{
	"latchkey_queue:", "redisson_lock_queue:", "redisson_lock_timeout:", "latchkey_fair:", "latchkey_rw_writers:", "latchkey_sc_waiting:", "latchkey_sc_calls:", "latchkey_sc_bar:",
}

// queues returns the keys of a server that store waiters.
func (x *trouble) queues(admin *rig.Admin) (keys []string) {
	for _, key := range admin.KeysOf(x.name) {
		if slices.ContainsFunc(queuePrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// lose deletes the queues, as a failover to a replica that lags behind may do.
func (x *trouble) lose(int) {
	for _, admin := range x.admins {
		for _, key := range x.queues(admin) {
			admin.Do("DEL", key)
		}
	}
}

// goBack saves and restores the queues in turn. A restored queue contains owners that are finished
// and lacks those that came later.
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

// Messages, connections or queues fail all the time: there are never too many inside, tokens grow,
// and no waiter is forgotten: the contest is over when all have got in.
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
					c := &contest{lasts: rig.Lasting(time.Second / 2), passes: max(contendedPasses(t), 12), dump: dumpOf(t, servers, x.name)}
					for i := range 3 {
						var clients []*latchkey.Client
						for n, server := range servers {
							clients = append(clients, connectVia(t, server, x.taps[n].Addr(), faultOptions))
						}
						c.contenders = append(c.contenders, l.contenders(clients, x.name, fmt.Sprint("client ", i), 2)...)
					}
					c.every, c.disturb, c.punctual = 50*time.Millisecond, cause(x), punctualFor(faultLease)
					c.run(t)
					t.Log(c)
					rig.Target(t, c.tally.Longest() < 6*faultLease, "the longest wait %v, want a period for each who contends, %v",
						c.tally.Longest(), 6*faultLease)
				})
			}
		})
	}
}
