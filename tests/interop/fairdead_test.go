package interop

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// fairWaiterProcess is a process of this library whose waiters will die. Its arguments are the URL,
// the name and the number of waiters.
var fairWaiterProcess = rig.Child("fair waiters", func(ctx context.Context, args []string) error {
	client, err := latchkey.Connect(ctx, args[0], latchkey.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	for range n {
		go func() { _, _ = client.NewFairLock(args[1]).Lock(ctx) }()
	}
	select {}
})

// dead is how many waiters die.
const dead = 8

// passedOver is how soon all dead waiters are passed over. One after the other, they would take
// longer.
const passedOver = 30 * time.Second

// addDeadGo adds waiters of this library and kills them.
func (q *queue) addDeadGo() {
	q.t.Helper()
	child := fairWaiterProcess.Start(q.t, q.where.server.URL(), q.name, strconv.Itoa(dead))
	q.grown(dead)
	child.Kill()
}

// deadJava starts a process. Its waiters come, and are killed, when the returned function is
// called: Java takes long to start, and the places of others would not last. If seen is true,
// somebody of this library sees that the process listens before it dies.
func (q *queue) deadJava(version string, settings fields, seen bool) (come func()) {
	q.t.Helper()
	own := startJVM(q.t, version)
	j := q.where.javaIn(q.t, own, settings)
	id := value[string](q.t, j.on("main").do("client.id", nil))
	return func() {
		q.t.Helper()
		for i := range dead {
			j.on(strconv.Itoa(i)).start("lock.lock", fields{"kind": "fair", "name": q.name})
			q.grown(1)
		}
		if seen {
			q.sees(id)
		}
		own.kill()
	}
}

// sees waits until a waiter of this library has seen that a client of Redisson listens.
func (q *queue) sees(id string) {
	q.t.Helper()
	rig.Eventually(q.t, soon, "its subscription is seen", func() error {
		there, err := q.do("HEXISTS", "latchkey_fair:{"+q.name+"}", id).AsBool()
		if err == nil && !there {
			err = errors.New("it is not noted")
		}
		return err
	})
}

// around adds waiters of both sides before and after some that die, and returns how long all live
// ones wait from the release on.
func (q *queue) around(die func()) time.Duration {
	q.t.Helper()
	hold, err := q.client.NewFairLock(q.name).Lock(within(q.t, soon))
	require.NoError(q.t, err)
	for i := range 4 {
		q.addGo(2 * i)
		q.addJava(2*i + 1)
	}
	die()
	for i := range 4 {
		q.addJava(100 + 2*i)
		q.addGo(101 + 2*i)
	}
	released := time.Now()
	require.NoError(q.t, hold.Unlock(context.Background()))
	q.served(16)
	return time.Since(released)
}

// Dead waiters of this library are passed over all together, whatever Redisson's wait timeout is,
// as long as a waiter of this library is in the queue.
func TestMixedQueueWithDeadGo(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := here(t)
	eachFairWait(t, func(t *testing.T, version string, wait time.Duration) {
		q := newQueueWith(t, where, version, wait, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 10 * time.Second}})
		took := q.around(q.addDeadGo)
		assert.Less(t, took, passedOver)
	})
}

// The same is true for dead waiters of Redisson.
func TestMixedQueueWithDeadJava(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	where := here(t)
	eachFairWait(t, func(t *testing.T, version string, wait time.Duration) {
		q := newQueueWith(t, where, version, wait, latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: 10 * time.Second}})
		settings := fields{}
		if wait != 0 {
			settings["fairLockWaitTimeout"] = wait.Milliseconds()
		}
		took := q.around(q.deadJava(version, settings, true))
		assert.Less(t, took, passedOver)
		t.Log("all who live were served within", took)
	})
}

// A process of Redisson that died before a waiter of this library saw it listen may be listening
// elsewhere. It keeps its places for up to five minutes, as among Java processes.
func TestDeadJavaThatNobodySaw(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		q := newQueue(t, here(t), version, 0)
		come := q.deadJava(version, fields{}, false)
		hold, err := q.client.NewFairLock(q.name).Lock(within(t, soon))
		require.NoError(t, err)
		come()
		require.NoError(t, hold.Unlock(context.Background()))
		deadlines, err := q.do("ZRANGE", "redisson_lock_timeout:{"+q.name+"}", "0", "0", "WITHSCORES").AsZScores()
		require.NoError(t, err)
		left := time.Until(time.UnixMilli(int64(deadlines[0].Score)))
		assert.InDelta(t, 5*time.Minute+defaultLease, left, float64(30*time.Second))
		for wait := time.Second; ; wait *= 2 { // until the server answers in time
			_, err = q.client.NewFairLock(q.name).Lock(within(t, time.Minute), latchkey.Wait(wait))
			if !errors.Is(err, latchkey.ErrUnavailable) || wait > soon {
				break
			}
		}
		assert.ErrorIs(t, err, latchkey.ErrNotAcquired)
	})
}
