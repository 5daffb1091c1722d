package tests

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// deadStale is the period after which waiters without a sign of life are passed over.
const deadStale = 1500 * time.Millisecond

// javaProcess is a Java process whose waiters listen, each on its own channel.
type javaProcess struct {
	javaFair
	admin *rig.Admin
	link  rueidis.DedicatedClient
	Kill  func()
}

// javaAt starts a Java process without waiters.
func javaAt(t *testing.T, server *rig.Server, name string) *javaProcess {
	t.Helper()
	raw := server.Raw(t)
	link, release := raw.Dedicate()
	t.Cleanup(func() { link.Close(); release() })
	return &javaProcess{javaFair{t, raw, name}, rig.NewAdmin(t, server), link, link.Close}
}

// join makes a thread join the queue.
func (j *javaProcess) join(i int) {
	j.t.Helper()
	require.False(j.t, j.acquire(i))
}

// listen subscribes for waiting threads, as they do after they have joined the queue.
func (j *javaProcess) listen(threads ...int) {
	j.t.Helper()
	for _, i := range threads {
		channel := channelOf(j.name) + ":" + javaOwner(i)
		require.NoError(j.t, j.link.Do(j.t.Context(), j.link.B().Subscribe().Channel(channel).Build()).Error())
	}
}

// counted waits until a client of this library has noticed that the process listens.
func (j *javaProcess) counted() {
	j.t.Helper()
	rig.Eventually(j.t, soon, "its subscription is seen", func() error {
		return j.noted(clientOf(javaOwner(0)))
	})
}

func (j *javaProcess) noted(field string) error {
	if j.admin.Int("HEXISTS", notesOf(j.name), field) == 0 {
		return errors.New("it is not noted")
	}
	return nil
}

// waitBehind adds a Go waiter with a short stale period.
func waitBehind(t *testing.T, server *rig.Server, admin *rig.Admin, name string) <-chan acquisition {
	t.Helper()
	options := latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: deadStale}}
	before := admin.Strings("LRANGE", queueOf(name), "0", "-1")
	waiter := lockInBackground(within(t, time.Minute), connect(t, server, options).NewFairLock(name))
	rig.Eventually(t, soon, "it is in the queue", func() error { // from which a stale one may go in the meantime
		now := admin.Strings("LRANGE", queueOf(name), "0", "-1")
		if len(now) == 0 || slices.Contains(before, now[len(now)-1]) {
			return fmt.Errorf("%v wait", now)
		}
		return nil
	})
	return waiter
}

// A Java process is killed while its threads wait one behind the other, for minutes each by their
// deadlines. A waiter behind them waits for one period.
func TestDeadJavaWaitersCostOnePeriod(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats) // a run id, without which no waiter is considered dead
	notInCluster(t, "the process listens to classic messages")
	server, name := rig.Fresh(t), "dead"
	java := javaAt(t, server, name)
	require.True(t, java.acquire(0))
	for i := 1; i <= 10; i++ {
		java.join(i)
		java.listen(i)
	}
	waiter := waitBehind(t, server, java.admin, name)
	java.counted()
	java.join(11) // it has not subscribed yet when the process dies
	second := waitBehind(t, server, java.admin, name)
	java.Kill()
	java.unlock(0)
	start := time.Now()
	served := make(chan acquisition, 2)
	for _, w := range []<-chan acquisition{waiter, second} { // a late one may have lost its place to the other
		go func() { served <- <-w }()
	}
	for range 2 {
		next := rig.Await(t, soon, "a Go waiter", served)
		require.NoError(t, next.err)
		t.Logf("%v after the release", next.at.Sub(start))
		mustUnlock(t, next.hold)
	}
}

// A Java thread that may still come is not passed over, however long it takes.
func TestLiveJavaWaiterKeepsItsPlace(t *testing.T) {
	t.Parallel()
	cases := map[string]func(java *javaProcess){
		"listens": func(java *javaProcess) { java.listen(1) },
		// At a replica, or with the other kind of messages.
		"listens elsewhere": func(*javaProcess) {},
	}
	for what, act := range cases {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := rig.Fresh(t)
			java := javaAt(t, server, what)
			require.True(t, java.acquire(0))
			java.join(1)
			act(java)
			waiter := waitBehind(t, server, java.admin, what)
			java.unlock(0)
			java.comesLate(waiter)
		})
	}
}

// A thread of Redisson first joins the queue and then subscribes. It is not passed over even if its
// process is known to listen and the lock becomes free before the thread subscribes.
func TestJavaWaiterThatHasYetToListen(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats) // a run id, without which no waiter is considered dead
	notInCluster(t, "the process listens to classic messages")
	server, name := rig.Fresh(t), "late"
	java := javaAt(t, server, name)
	require.True(t, java.acquire(0))
	java.join(2)
	java.listen(2)
	first := waitBehind(t, server, java.admin, name)
	java.counted()
	java.unlock(0)
	require.True(t, java.acquire(2))
	java.join(1)
	java.unlock(2)
	next := rig.Await(t, soon, "the Go waiter", first)
	require.NoError(t, next.err)
	second := waitBehind(t, server, java.admin, name)
	mustUnlock(t, next.hold)
	rig.Eventually(t, soon, "its silence is noted", func() error { return java.noted(javaOwner(1)) })
	java.listen(1)
	java.comesLate(second)
}

func (j *javaProcess) isFirst() error {
	if head := j.admin.Text("LINDEX", queueOf(j.name), "0"); head != javaOwner(1) {
		return errors.New(head + " is the first")
	}
	return nil
}

// comesLate checks that thread 1 keeps its place at the head of the queue for several periods, and
// that the waiter behind it gets its turn afterwards.
func (j *javaProcess) comesLate(behind <-chan acquisition) {
	j.t.Helper()
	rig.Throughout(j.t, 5*deadStale/2, "it keeps its place", j.isFirst)
	assert.Empty(j.t, behind, "nobody was let in before it")
	require.True(j.t, j.acquire(1))
	j.unlock(1)
	next := rig.Await(j.t, soon, "the Go waiter", behind)
	require.NoError(j.t, next.err)
	mustUnlock(j.t, next.hold)
}

// A thread listens at the master. After a failover it has to find the new one first: a missing
// listener there is not a sign of its death.
func TestLiveJavaWaiterAfterAFailover(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	java := javaAt(t, r.Master, "failover")
	require.True(t, java.acquire(0))
	java.join(1)
	java.listen(1)
	waitBehind(t, r.Master, java.admin, "failover")
	java.counted()
	r.AwaitInStep()
	next := r.Promote(0)
	moved := javaAt(t, next, "failover")
	require.NoError(t, moved.noted(clientOf(javaOwner(0))))
	waitBehind(t, next, moved.admin, "failover")
	moved.unlock(0)
	rig.Throughout(t, 5*deadStale/2, "it keeps its place", moved.isFirst)
}

// In a cluster with classic messages a server does not know the listeners of other nodes. The
// waiter keeps its place.
func TestLiveJavaWaiterInAClusterWithClassicMessages(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	cluster := rig.NewCluster(t)
	server, _ := cluster.Serving("classic")
	java := javaAt(t, server, "classic")
	require.True(t, java.acquire(0))
	java.join(1)
	java.listen(1)
	client := connectCluster(t, cluster, latchkey.Options{Tuning: latchkey.Tuning{ClassicPubSub: true, StaleWaiterTimeout: deadStale}})
	waiter := lockInBackground(within(t, time.Minute), client.NewFairLock("classic"))
	queueLength(t, java.admin, "classic", 2)
	rig.Throughout(t, deadStale, "it keeps its place", java.isFirst)
	java.Kill() // or it has moved its subscription
	java.unlock(0)
	java.comesLate(waiter)
}
