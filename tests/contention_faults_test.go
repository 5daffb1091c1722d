package tests

import (
	"fmt"
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

// trouble is what happens again and again to those who contend for a lock.
type trouble struct {
	tap   *rig.Tap // on the way of all
	name  string
	admin *rig.Admin
	old   map[string]string // queues as they stood before
}

// queues are the keys in which waiters stand in line.
func (x *trouble) queues() (keys []string) {
	for _, key := range x.admin.KeysOf(x.name) {
		for _, prefix := range []string{"latchkey_queue:", "redisson_lock_queue:", "redisson_lock_timeout:"} {
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// lose deletes what stands in line, as a failover to a replica that is behind may do.
func (x *trouble) lose(int) {
	for _, key := range x.queues() {
		x.admin.Do("DEL", key)
	}
}

// remember and bring back in turn what stood in line: owners that are used up, and not those
// who have come since.
func (x *trouble) goBack(n int) {
	if n%2 == 0 {
		x.old = map[string]string{}
		for _, key := range x.queues() {
			x.old[key] = x.admin.Text("DUMP", key)
		}
		return
	}
	for key, value := range x.old {
		if value != "" {
			x.admin.Do("RESTORE", key, "60000", value, "REPLACE")
		}
	}
}

// Something goes wrong all the time with messages, connections or the line of waiters: never
// two inside, tokens grow, and nobody is forgotten.
func TestContention_in_trouble(t *testing.T) {
	rig.Need(t, rig.Single, rig.Stats) // the embedded server cannot RESTORE
	troubles := map[string]func(x *trouble) func(n int){
		"messages are lost":      func(x *trouble) func(int) { x.tap.DropMessages(true); return func(int) {} },
		"some messages are lost": func(x *trouble) func(int) { return func(n int) { x.tap.DropMessages(n%2 == 0) } },
		"subscriptions break":    func(x *trouble) func(int) { return func(int) { x.tap.CutSubscribers() } },
		"the line is lost":       func(x *trouble) func(int) { return x.lose },
		"an old line comes back": func(x *trouble) func(int) { return x.goBack },
	}
	for what, cause := range troubles {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			eachKind(t, func(t *testing.T, k kind) {
				server, name := rig.Shared(), rig.Name(t)
				x := &trouble{tap: rig.NewTap(t, server), name: name, admin: rig.NewAdmin(t, server)}
				c := &contest{lasts: rig.Lasting(2 * time.Second), passes: contendedPasses(t), dump: dumpOf(t, []*rig.Server{server}, name)}
				for i := range 3 {
					lock := k.open(connectVia(t, server, x.tap.Addr(), faultOptions), name)
					c.parties = append(c.parties, party{name: fmt.Sprint("client ", i), goroutines: 2, acquire: locking(lock)})
				}
				c.every, c.disturb = 50*time.Millisecond, cause(x)
				c.run(t)
				t.Log(c)
				assert.Less(t, c.tally.Longest(), soon)
				rig.Target(t, c.tally.Longest() < 6*faultLease, "the longest wait %v, want a period for each who contends, %v",
					c.tally.Longest(), 6*faultLease)
			}, messages)
		})
	}
}
