package tests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// granting selects the kinds whose release grants the lock to the first waiter on the server.
func granting(k kind) bool { return handedOver(k) || k.queued }

// oneOfEach selects all kinds, or in short mode one of those whose releases hand over in the same
// way.
func oneOfEach(k kind) bool { return !testing.Short() || k.name == lockKind.name || k.queued }

// failoverOptions let a busy machine keep waiters in the queue until the replica takes over.
var failoverOptions = latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 3 * time.Second, PollCeiling: faultPoll}}

// failover is a lock on a master whose replica falls behind and takes its place. Each client has a
// tap of its own, whose address does not change.
type failover struct {
	t    *testing.T
	kind kind
	name string
	*rig.Replicated
	master, next *rig.Admin
	taps         []*rig.Tap
}

func newLockFailover(t *testing.T, k kind) *failover {
	t.Helper()
	r := rig.NewReplicated(t, 1, 0)
	return &failover{t: t, kind: k, name: rig.Name(t), Replicated: r,
		master: rig.NewAdmin(t, r.Master), next: rig.NewAdmin(t, r.Replicas[0])}
}

func (f *failover) tap() *rig.Tap {
	f.t.Helper()
	tap := rig.NewTap(f.t, f.Master)
	f.taps = append(f.taps, tap)
	return tap
}

func (f *failover) connect(tap *rig.Tap) *latchkey.Client {
	f.t.Helper()
	return connectVia(f.t, f.Master, tap.Addr(), failoverOptions)
}

// wait makes a client wait.
func (f *failover) wait(ctx context.Context, client *latchkey.Client) <-chan acquisition {
	f.t.Helper()
	before := f.waiting(f.master)
	done := lockInBackground(ctx, f.kind.open(client, f.name))
	f.comesTo(f.master, before+1)
	return done
}

// another makes another client wait.
func (f *failover) another(ctx context.Context) <-chan acquisition {
	f.t.Helper()
	return f.wait(ctx, f.connect(f.tap()))
}

// waiting returns how many waiters are in the queue of a server.
func (f *failover) waiting(admin *rig.Admin) int64 {
	if f.kind.queued {
		return admin.Int("LLEN", queueOf(f.name))
	}
	return inQueue(admin, f.name)
}

func (f *failover) comesTo(admin *rig.Admin, want int64) {
	f.t.Helper()
	rig.Eventually(f.t, soon, "the queue", func() error {
		if n := f.waiting(admin); n != want {
			return fmt.Errorf("%d are in the queue, want %d", n, want)
		}
		return nil
	})
}

// fallBehind leaves the replica with the current state of the master.
func (f *failover) fallBehind() {
	f.t.Helper()
	f.AwaitInStep()
	f.Promote(0)
}

// over makes the replica take the place of the master.
func (f *failover) over() {
	for _, tap := range f.taps {
		tap.Redirect(f.Replicas[0])
	}
}

// listen returns nil if all owners in the queue of the next master listen there, except one that is
// dead.
func (f *failover) listen() error {
	heard, owners := 0, f.owners()
	for _, owner := range owners {
		id, _, _ := strings.Cut(owner, ":")
		if f.next.Subscribers("latchkey:{"+id+"}") > 0 {
			heard++
		}
	}
	if heard < len(owners)-1 { // on a busy machine fewer may be left
		return fmt.Errorf("%d of %d listen", heard, len(owners))
	}
	return nil
}

// owners returns the owners in the queue of the next master.
func (f *failover) owners() []string {
	if f.kind.queued {
		return f.next.Strings("LRANGE", queueOf(f.name), "0", "-1")
	}
	return slices.DeleteFunc(f.next.Strings("ZRANGE", queueKey(f.name), "0", "-1"), func(member string) bool {
		return strings.HasPrefix(member, "~") // when a waiter that polls asks again
	})
}

// owner returns the owner of the lock on the next master, "" for none.
func (f *failover) owner() string {
	switch f.next.Text("TYPE", f.name) {
	case "string":
		return f.next.Text("GET", f.name)
	case "hash":
		if owners := f.next.Strings("HKEYS", f.name); len(owners) > 0 {
			return owners[0]
		}
	}
	return ""
}

// serve waits until all waiters have acquired the lock and released it at once. It returns the
// longest time for which the lock had the same owner.
func (f *failover) serve(waiters ...<-chan acquisition) (longest time.Duration) {
	f.t.Helper()
	start, served := time.Now(), make(chan acquisition, len(waiters))
	for _, waiter := range waiters {
		go func() {
			got := <-waiter
			if got.err == nil {
				got.err = got.hold.Unlock(context.Background())
			}
			served <- got
		}()
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	hung := time.After(soon)
	since, had := start, ""
	for left := len(waiters); left > 0; {
		select {
		case got := <-served:
			require.NoError(f.t, got.err)
			f.t.Logf("a waiter is served %v after the release", got.at.Sub(start).Round(time.Millisecond))
			left--
		case <-look.C:
			if owner := f.owner(); owner != had {
				since, had = time.Now(), owner
			}
			if had != "" {
				longest = max(longest, time.Since(since))
			}
		case <-hung:
			require.Fail(f.t, "a waiter hangs", "%d have not been served; the server has %v", left, f.next.Dump(f.name))
		}
	}
	return longest
}

// The replica does not know the waiters: they join its queue when they poll there.
func TestHandover_failover_that_loses_the_queue(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		f := newLockFailover(t, k)
		hold := mustLock(t, k.open(f.connect(f.tap()), f.name), latchkey.Lease(time.Minute))
		f.fallBehind()
		ctx := within(t, time.Minute)
		waiters := []<-chan acquisition{f.another(ctx), f.another(ctx), f.another(ctx)}
		require.Zero(t, f.waiting(f.next))
		f.over()
		mustUnlock(t, hold)
		longest := f.serve(waiters...)
		t.Logf("one owner has it for %v at most", longest.Round(time.Millisecond))
		assert.Less(t, longest, failoverOptions.Tuning.StaleWaiterTimeout+leeway)
		rig.Eventually(t, soon, "all is free", free(f.next, f.name))
	}, granting, oneOfEach)
}

// The replica has an old queue. In front of the current waiters it has one whose process was
// killed, one that gave up, and another one that gave up and receives no messages. None of them has
// the lock for longer than the lease of a grant, and all others get it.
func TestHandover_failover_that_brings_an_old_queue(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		f := newLockFailover(t, k)
		holder := f.connect(f.tap())
		hold := mustLock(t, k.open(holder, f.name), latchkey.Lease(time.Minute))
		other := mustLock(t, k.open(holder, f.name+":other"), latchkey.Lease(time.Minute))
		killed := holderProcess.Start(t, k.name, f.name, f.Master.Ticket(), f.tap().Addr())
		f.comesTo(f.master, 1)
		impatient, leave := context.WithCancel(t.Context())
		deaf, ctx := f.tap(), within(t, time.Minute)
		var left, listening []<-chan acquisition
		for _, tap := range []*rig.Tap{f.tap(), deaf} {
			client := f.connect(tap)
			left = append(left, f.wait(impatient, client))
			listening = append(listening, lockInBackground(ctx, k.open(client, other.Name())))
		}
		waiters := []<-chan acquisition{f.another(ctx)}
		f.fallBehind()
		killed.Kill()
		leave()
		for _, each := range left {
			require.ErrorIs(t, rig.Await(t, soon, "the end of a wait", each).err, context.Canceled)
		}
		waiters = append(waiters, lockInBackground(ctx, k.open(f.connect(f.tap()), f.name)))
		require.Equal(t, int64(4), f.waiting(f.next))
		deaf.DropMessages(true)
		f.over()
		rig.Eventually(t, soon, "all listen again who live", f.listen)
		mustUnlock(t, hold)
		longest := f.serve(waiters...)
		mustUnlock(t, other)
		served := rig.Goroutines(t)
		for _, each := range listening { // in any order
			served.Go(func() {
				got := <-each
				if assert.NoError(t, got.err) {
					assert.NoError(t, got.hold.Unlock(context.Background()))
				}
			})
		}
		served.Wait()
		t.Logf("one owner has it for %v at most, short lease %v", longest.Round(time.Millisecond), failoverOptions.Tuning.StaleWaiterTimeout)
		assert.Less(t, longest, failoverOptions.Tuning.StaleWaiterTimeout+leeway)
		// A place of the old queue may be left behind the others, of one that gave up and that was
		// not called.
		rig.Eventually(t, time.Minute+soon, "all is free", free(f.next, f.name))
	}, granting, oneOfEach)
}
