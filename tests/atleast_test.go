package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A lock with AtLeast stays taken for its minimum time, even if the holder releases it, dies or is
// closed. The tests compare with the expiry on the server, which must be late enough.

// stayTaken is a lock that must stay taken for d after its acquisition, which happened between
// before and after.
type stayTaken struct {
	admin         *rig.Admin
	name          string
	d             time.Duration
	before, after time.Time
}

// take acquires a lock for at least d.
func take(t *testing.T, admin *rig.Admin, lock latchkey.Locker, d time.Duration, options ...latchkey.LockOption) (*latchkey.Hold, stayTaken) {
	t.Helper()
	at := stayTaken{admin: admin, name: lock.Name(), d: d, before: time.Now()}
	hold := mustLock(t, lock, append(options, latchkey.AtLeast(d))...)
	at.after = time.Now()
	return hold, at
}

// stays checks that the lock is taken until the time is over.
func (at stayTaken) stays(t *testing.T) {
	t.Helper()
	left := at.admin.PTTL(at.name)
	if until := at.before.Add(at.d); time.Now().Before(until) {
		assert.GreaterOrEqual(t, left, time.Until(until)-3*time.Millisecond, "but for rounding")
	}
}

// ends checks that the lock is taken for no longer than necessary.
func (at stayTaken) ends(t *testing.T) {
	t.Helper()
	asked := time.Now()
	assert.LessOrEqual(t, at.admin.PTTL(at.name), at.after.Add(at.d).Sub(asked)+leeway)
}

// Unlock ends the hold and leaves the lock taken, for the former holder as for everyone else.
func TestAtLeastOutlivesUnlock(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		client, other := connect(t, server), connect(t, server)
		lock := k.open(client, name)
		task := client.NewOwner()
		ctx := within(t, soon)
		if k.reentrant {
			ctx = latchkey.WithOwner(ctx, task)
		}
		before := time.Now()
		hold, err := lock.Lock(ctx, latchkey.AtLeast(time.Hour))
		require.NoError(t, err)
		at := stayTaken{admin, name, time.Hour, before, time.Now()}
		at.stays(t)
		owner, work := hold.Share(), hold.Context(t.Context())

		mustUnlock(t, hold)
		at.stays(t)
		at.ends(t)
		require.ErrorIs(t, context.Cause(work), latchkey.ErrNotHeld)
		require.ErrorIs(t, hold.Unlock(ctx), latchkey.ErrNotHeld)
		require.Zero(t, hold.ValidFor())

		attempts := map[string]func() (*latchkey.Hold, error){
			"the same client": func() (*latchkey.Hold, error) { return lock.TryLock(t.Context()) },
			"another client":  func() (*latchkey.Hold, error) { return k.open(other, name).TryLock(t.Context()) },
			"who waits": func() (*latchkey.Hold, error) {
				return nil, refused(t, func(wait latchkey.WaitOption) error { _, err := lock.Lock(t.Context(), wait); return err })
			},
		}
		if k.reentrant {
			attempts["the same task"] = func() (*latchkey.Hold, error) { return lock.TryLock(ctx) }
			attempts["the same owner"] = func() (*latchkey.Hold, error) { return lock.TryLock(t.Context(), latchkey.As(owner)) }
			if guests(k) {
				attempts["a guest"] = func() (*latchkey.Hold, error) { return k.open(other, name).TryLock(t.Context(), latchkey.As(owner)) }
			}
		}
		for who, attempt := range attempts {
			_, err := attempt()
			require.ErrorIs(t, err, latchkey.ErrNotAcquired, who)
		}
		at.stays(t)

		i, err := lock.Inspect(t.Context())
		require.NoError(t, err)
		assert.True(t, i.Locked())
		assert.Equal(t, []latchkey.Holder{{Owner: owner, Count: 1, Write: k.sided, Kept: true}}, i.Holders)

		gone, err := other.ForceUnlock(within(t, soon), name)
		require.NoError(t, err)
		assert.True(t, gone)
		mustUnlock(t, mustLock(t, lock))
		assert.NoError(t, free(admin, name)())
	})
}

// Until the minimum time is over the hold is renewed like any other. After it, Unlock frees the
// lock.
func TestAtLeastIsOver(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server := rig.Shared()
		admin := rig.NewAdmin(t, server)
		require.NoError(t, rig.InTime(t, func(before int) error {
			name, lease := fmt.Sprint(rig.Name(t), " ", before), 600*time.Millisecond<<before
			lock := k.open(connect(t, server, latchkey.Options{Lease: lease}), name)
			hold, at := take(t, admin, lock, 2*lease)
			for time.Since(at.after) < 3*lease {
				at.stays(t)
				rest(lease / 4)
			}
			if err := hold.Unlock(context.Background()); err != nil {
				return fmt.Errorf("a hold that is renewed: %w", err)
			}
			return free(admin, name)()
		}))
	})
}

// The minimum time is that of the outermost hold and takes effect at the last release.
func TestAtLeastOfReentries(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		lock := k.open(connect(t, server), name)
		outer, at := take(t, admin, lock, time.Hour)
		inner := mustReenter(t, outer, lock)
		mustUnlock(t, outer)
		require.NoError(t, inner.Err())
		_, err := lock.TryLock(inner.Context(t.Context()))
		require.NoError(t, err, "it is held, and may be entered")
		at.stays(t)

		outer = mustLock(t, k.open(connect(t, server), name+"2"))
		lock = k.open(connect(t, server), name+"2")
		mustUnlock(t, outer)
		outer = mustLock(t, lock)
		inner, err = lock.Lock(outer.Context(t.Context()), latchkey.AtLeast(time.Hour))
		require.NoError(t, err)
		assert.LessOrEqual(t, admin.PTTL(name+"2"), defaultLease)
		mustUnlock(t, inner)
		mustUnlock(t, outer)
		assert.NoError(t, free(admin, name+"2")())
	}, reentrant)
}

// A guest that leaves last does not free a lock that must stay taken.
func TestAtLeastWithAGuest(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server, name := rig.Shared(), rig.Name(t)
		admin := rig.NewAdmin(t, server)
		lock, elsewhere := k.open(connect(t, server), name), k.open(connect(t, server), name)
		hold, at := take(t, admin, lock, time.Hour)
		guest := mustLock(t, elsewhere, latchkey.As(hold.Share()))
		mustUnlock(t, hold)
		require.NoError(t, guest.Err())
		mustUnlock(t, guest)
		at.stays(t)
		_, err := lock.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	}, reentrant, guests)
}

// Waiters acquire the lock when the minimum time is over, and not before: waiters of the same
// client, waiters of other clients, and readers. Messages wake them: the next poll is far away.
func TestAtLeastKeepsWaitersOut(t *testing.T) {
	t.Parallel()
	for where, own := range map[string]bool{"of the same client": true, "of another client": false} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			eachKind(t, func(t *testing.T, k kind) {
				t.Parallel()
				keepsWaitersOut(t, k, own)
			})
		})
	}
}

func keepsWaitersOut(t *testing.T, k kind, own bool) {
	const d, ceiling = time.Second, 2 * time.Hour
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	options := latchkey.Options{
		Tuning: latchkey.Tuning{PollCeiling: ceiling, StaleWaiterTimeout: longestStale, Turn: longestTurn}, Lease: 2 * ceiling,
	}
	if k.sided && own {
		options.Tuning.StaleWaiterTimeout = 3 * time.Second // readers poll three times in it
	}
	client, waiting := connect(t, server, options), connect(t, server, options)
	hold, at := take(t, admin, k.open(client, name), d)
	if own {
		waiting = client
	}
	waiters := []anyLock{k.open(waiting, name), k.open(waiting, name)}
	if k.sided && own {
		waiters = append(waiters, waiting.NewRWLock(name).Reader())
	}
	entered := make(chan acquisition, len(waiters))
	for _, lock := range waiters {
		go func() {
			hold, err := lock.Lock(t.Context())
			got := acquisition{at: time.Now(), err: err}
			if err == nil {
				got.err = hold.Unlock(context.Background())
			}
			entered <- got
		}()
	}
	if k.messages && !own {
		awaitWaiter(t, admin, name)
	}
	rest(100 * time.Millisecond) // most likely in the queue
	mustUnlock(t, hold)
	first := rig.Await(t, 4*soon, "the first waiter", entered)
	require.NoError(t, first.err)
	for range waiters[1:] {
		require.NoError(t, rig.Await(t, 4*soon, "the next waiter", entered).err)
	}
	assert.GreaterOrEqual(t, first.at.Sub(at.before), d, "not before")
	t.Logf("the first %v after the end", first.at.Sub(at.after.Add(d)).Round(time.Millisecond))
	rig.Eventually(t, soon, "the lock is free", free(admin, name))
}

// AtLeast also works for a lock that was waited for, although a release grants the lock for a short
// time only and a hold passed on inside a client has only the rest of a lease.
func TestAtLeastOfAWaiter(t *testing.T) {
	t.Parallel()
	for where, own := range map[string]bool{"of the same client": true, "of another client": false} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			eachKind(t, func(t *testing.T, k kind) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				admin := rig.NewAdmin(t, server)
				client, waiting := connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{Turn: longestTurn}}), connect(t, server)
				hold := mustLock(t, k.open(client, name))
				if own {
					waiting = client
				}
				waiter := lockInBackground(within(t, soon), k.open(waiting, name), latchkey.AtLeast(time.Hour))
				if k.messages && !own {
					awaitWaiter(t, admin, name)
				}
				rest(20 * time.Millisecond) // most likely in the queue as well
				at := stayTaken{admin: admin, name: name, d: time.Hour, before: time.Now()}
				mustUnlock(t, hold)
				next := rig.Await(t, soon, "the waiter", waiter)
				at.after = time.Now()
				require.NoError(t, next.err)
				at.stays(t)
				mustUnlock(t, next.hold)
				at.stays(t)
				at.ends(t)
			})
		})
	}
}

// A MaxHold ends the hold, and its key, no sooner than the lock may be free. A write lock with
// AtLeast cannot be downgraded.
func TestAtLeastWithOtherOptions(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	hold, at := take(t, admin, client.NewLock(name), time.Second, latchkey.MaxHold(time.Second))
	rig.Await(t, soon, "the limit", hold.Lost())
	require.ErrorIs(t, hold.Err(), latchkey.ErrMaxHold)
	at.stays(t)

	hold, at = take(t, admin, client.NewLock(name+"2"), time.Hour)
	require.NoError(t, hold.Extend(t.Context(), 2*time.Hour))
	mustUnlock(t, hold)
	at.stays(t)
	at.ends(t)

	both := client.NewRWLock(name + "3")
	write, at := take(t, admin, both.Writer(), time.Hour)
	_, err := write.Downgrade(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	read, err := both.Reader().Lock(write.Context(t.Context()))
	require.NoError(t, err)
	mustUnlock(t, write)
	require.NoError(t, read.Err(), "who reads reads on")
	again, err := both.Reader().Lock(read.Context(t.Context()))
	require.NoError(t, err, "and may enter again")
	require.Equal(t, "2", admin.Text("HGET", name+"3", read.Owner().String()))
	mustUnlock(t, again)
	_, err = both.Reader().TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, read)
	at.stays(t)

	both = client.NewRWLock(name + "4")
	write, at = take(t, admin, both.Writer(), time.Second)
	read, err = both.Reader().Lock(write.Context(t.Context()))
	require.NoError(t, err)
	mustUnlock(t, write)
	other := mustLock(t, connect(t, server).NewRWLock(name+"4").Reader())
	assert.GreaterOrEqual(t, time.Since(at.before), at.d, "not before, and although the other reads on")
	mustUnlock(t, read)
	mustUnlock(t, other)
}

// Redis stores only an owner, in Redisson's format, and the release publishes a message that makes
// waiters retry.
func TestGoldenAtLeast(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, heard := rig.NewAdmin(t, server), hear(t, server, name)
	client := connect(t, server)
	hold := mustLock(t, client.NewLock(name), latchkey.AtLeast(goldenLease))
	owner := hold.Owner().String()
	golden(t, admin, name, map[string]rig.Entry{name: hash(owner, "1")})
	mustUnlock(t, hold)
	golden(t, admin, name, map[string]rig.Entry{name: hash(owner+":kept", "1")})
	assert.Equal(t, "0", rig.Await(t, soon, "the message", heard))
	admin.Do("DEL", name)

	hold = mustLock(t, client.NewMutex(name), latchkey.AtLeast(goldenLease))
	owner = hold.Owner().String()
	mustUnlock(t, hold)
	golden(t, admin, name, map[string]rig.Entry{name: {Type: "string", String: owner + ":kept", TTL: goldenLease}})
	admin.Do("DEL", name)

	hold = mustLock(t, client.NewRWLock(name).Writer(), latchkey.AtLeast(goldenLease))
	owner = hold.Owner().String()
	mustUnlock(t, hold)
	got := admin.Dump(name)
	assert.Equal(t, map[string]string{"mode": "write", owner + ":kept:write": "1"}, got[name].Hash)
	assert.LessOrEqual(t, got[name].TTL, goldenLease)
}
