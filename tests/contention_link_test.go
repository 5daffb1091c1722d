package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// neighbors are clients close to the server whose goroutines release a lock and try to acquire it
// again at once.
type neighbors struct{ clients, goroutines int }

// A client with one goroutine is a millisecond away from the server. Others, close to the server,
// keep the lock for 20 ms and try to acquire it again at once. The far client gets at least half of
// the share that it would have if all goroutines had equal shares.
func TestFarClientGetsItsShare(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	for _, k := range []kind{lockKind, writeKind, mutexKind} {
		for _, n := range []neighbors{{1, 1}, {2, 2}, {3, 2}} {
			t.Run(fmt.Sprintf("%s beside %d clients of %d", k.name, n.clients, n.goroutines), func(t *testing.T) {
				t.Parallel() // they sleep nearly all the time
				farClientGetsItsShare(t, k, n)
			})
		}
	}
}

func farClientGetsItsShare(t *testing.T, k kind, n neighbors) {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	c := &contest{hold: 20 * time.Millisecond, lasts: sharesFor(t, 2*time.Second), dump: dumpOf(t, []*rig.Server{server}, name)}
	join := func(who string, client *latchkey.Client, goroutines int) {
		c.contenders = append(c.contenders, contender{name: who, goroutines: goroutines, acquire: locking(k.open(client, name))})
	}
	link := rig.NewLink(t, server)
	far := connectVia(t, server, link.Addr())
	mustUnlock(t, mustLock(t, k.open(far, name))) // opens its connection
	link.DelayRequests(time.Millisecond)
	link.DelayReplies(time.Millisecond)
	join("the far one", far, 1)
	for i := range n.clients {
		join(fmt.Sprint("neighbor ", i), connect(t, server), n.goroutines)
	}
	c.run(t)
	share, fair := c.share(0)
	t.Logf("share %.3f, equal shares are %.3f: %v", share, fair, c)
	rig.Target(t, share >= fair/2, "the far client has %.3f of all passes, want half of %.3f", share, fair)
}
