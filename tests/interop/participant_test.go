package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
)

// patience is how long a test waits for something that another step of it will release.
const patience = 45 * time.Second

// participant is how one side holds something and waits for it. The tests in which something goes
// from one side to the other use one participant of each side.
type participant struct {
	hold    func()
	release func() time.Time        // returns when it began
	wait    func() <-chan time.Time // delivers when it was granted; closes if it was refused
	leave   func()                  // releases what wait got
}

// participants returns both participants for a test of one primitive, with a new name.
type participants func(t *testing.T, g *latchkey.Client, j *java, name string) (goSide, javaSide participant)

// allParticipants are the primitives whose waiters are woken by messages. Spin locks are separate.
// A side of a read/write lock waits for a holder of the other side.
var allParticipants = map[string]participants{
	"lock":        lockParticipants("lock", "lock"),
	"fenced":      lockParticipants("fenced", "fenced"),
	"fair":        lockParticipants("fair", "fair"),
	"write":       lockParticipants("write", "write"),
	"write, read": lockParticipants("write", "read"),
	"read, write": lockParticipants("read", "write"),
	"multi":       multiParticipants,
	"semaphore":   semaphoreParticipants,
	"permit":      permitParticipants,
	"latch":       latchParticipants,
}

// goParticipant makes a participant from functions that may fail.
func goParticipant(t *testing.T, hold, release, wait, leave func(context.Context) error) participant {
	t.Helper()
	must := func(f func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, f(ctx))
	}
	return participant{
		hold:    func() { must(hold) },
		release: func() time.Time { began := time.Now(); must(release); return began },
		wait:    func() <-chan time.Time { return goWait(t, wait) },
		leave:   func() { must(leave) },
	}
}

func goWait(t *testing.T, wait func(context.Context) error) <-chan time.Time {
	t.Helper()
	granted := make(chan time.Time, 1)
	go func() {
		defer close(granted)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := wait(ctx); assert.NoError(t, err, "a waiter") {
			granted <- time.Now()
		}
	}()
	return granted
}

// javaWait turns an answer into the time of the grant.
func javaWait(t *testing.T, answers <-chan answer) <-chan time.Time {
	t.Helper()
	granted := make(chan time.Time, 1)
	go func() {
		defer close(granted)
		if a := <-answers; assert.NoError(t, a.err(), "a waiter in Java") {
			granted <- a.ended()
		}
	}()
	return granted
}

// locker acquires and releases, and keeps its hold.
type locker struct {
	lock anyLock
	hold *latchkey.Hold
}

func (l *locker) acquire(ctx context.Context) (err error) {
	l.hold, err = l.lock.Lock(ctx)
	return err
}

func (l *locker) release(ctx context.Context) error { return l.hold.Unlock(ctx) }

// lockParticipants holds with a lock of one kind and waits with one of another.
func lockParticipants(holds, waits string) participants {
	return func(t *testing.T, g *latchkey.Client, j *java, name string) (goSide, javaSide participant) {
		t.Helper()
		holder, waiter := &locker{lock: lockOf(g, holds, name)}, &locker{lock: lockOf(g, waits, name)}
		goSide = goParticipant(t, holder.acquire, holder.release, waiter.acquire, waiter.release)
		return goSide, javaLocking(t, j, fields{"kind": holds, "name": name}, fields{"kind": waits, "name": name})
	}
}

func javaLocking(t *testing.T, j *java, held, waited fields) participant {
	t.Helper()
	holder, waiter := j.on("holder"), j.on("waiter")
	return participant{
		hold:    func() { holder.do("lock.lock", held) },
		release: func() time.Time { return holder.do("lock.unlock", held).began() },
		wait:    func() <-chan time.Time { return javaWait(t, waiter.start("lock.lock", waited)) },
		leave:   func() { waiter.do("lock.unlock", waited) },
	}
}

func multiParticipants(t *testing.T, g *latchkey.Client, j *java, name string) (goSide, javaSide participant) {
	t.Helper()
	names := []string{name + ":1", name + ":2"}
	both := latchkey.NewMultiLock(g.NewLock(names[0]), g.NewLock(names[1]))
	holder, waiter := &locker{lock: both}, &locker{lock: both}
	goSide = goParticipant(t, holder.acquire, holder.release, waiter.acquire, waiter.release)
	return goSide, javaLocking(t, j, fields{"names": names}, fields{"names": names})
}

// semaphoreParticipants uses a single permit.
func semaphoreParticipants(t *testing.T, g *latchkey.Client, j *java, name string) (goSide, javaSide participant) {
	t.Helper()
	s := g.NewSemaphore(name)
	_, err := s.TrySetPermits(within(t, soon), 1)
	require.NoError(t, err)
	acquire := func(ctx context.Context) error { return s.Acquire(ctx) }
	release := func(ctx context.Context) error { return s.Release(ctx) }
	f := fields{"name": name}
	holder, waiter := j.on("holder"), j.on("waiter")
	return goParticipant(t, acquire, release, acquire, release), participant{
		hold:    func() { holder.do("semaphore.acquire", f) },
		release: func() time.Time { return holder.do("semaphore.release", f).began() },
		wait:    func() <-chan time.Time { return javaWait(t, waiter.start("semaphore.acquire", f)) },
		leave:   func() { waiter.do("semaphore.release", f) },
	}
}

func permitParticipants(t *testing.T, g *latchkey.Client, j *java, name string) (goSide, javaSide participant) {
	t.Helper()
	s := g.NewPermitSemaphore(name)
	_, err := s.TrySetPermits(within(t, soon), 1)
	require.NoError(t, err)
	var permit *latchkey.Permit
	acquire := func(ctx context.Context) (err error) {
		permit, err = s.Acquire(ctx)
		return err
	}
	release := func(ctx context.Context) error { return permit.Release(ctx) }
	return goParticipant(t, acquire, release, acquire, release), javaPermits(t, j, name)
}

func javaPermits(t *testing.T, j *java, name string) participant {
	t.Helper()
	var id string
	f := fields{"name": name, "lease": 60_000}
	holder, waiter := j.on("holder"), j.on("waiter")
	return participant{
		hold: func() { id = value[[]string](t, holder.do("permit.acquire", f))[0] },
		release: func() time.Time {
			return holder.do("permit.release", fields{"name": name, "permit": id}).began()
		},
		wait:  func() <-chan time.Time { return javaWait(t, waiter.start("permit.acquire", f)) },
		leave: func() { holder.do("permit.delete", f) },
	}
}

// latchParticipants holds with a count of one, and waits with Await.
func latchParticipants(t *testing.T, g *latchkey.Client, j *java, name string) (goSide, javaSide participant) {
	t.Helper()
	l := g.NewCountDownLatch(name)
	set := func(ctx context.Context) error { _, err := l.TrySetCount(ctx, 1); return err }
	count := func(ctx context.Context) error { _, err := l.CountDown(ctx); return err }
	nothing := func(context.Context) error { return nil }
	f := fields{"name": name, "n": 1, "wait": patience.Milliseconds()}
	holder, waiter := j.on("holder"), j.on("waiter")
	return goParticipant(t, set, count, func(ctx context.Context) error { return l.Await(ctx) }, nothing), participant{
		hold:    func() { holder.do("latch.trySet", f) },
		release: func() time.Time { return holder.do("latch.countDown", f).began() },
		wait:    func() <-chan time.Time { return javaWait(t, waiter.start("latch.await", f)) },
		leave:   func() {},
	}
}
