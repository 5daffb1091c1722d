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

// Several goroutines of a program may hold a RedLock or a MultiLock at once if its members allow
// it.

func someReader(c *latchkey.Client) anyLock { return c.NewRWLock("x").Reader() }

func someWriter(c *latchkey.Client) anyLock { return c.NewRWLock("x").Writer() }

// lockTogether acquires with each of the locks, in goroutines of their own, and releases nothing
// before all have acquired.
func lockTogether(t *testing.T, locks ...latchkey.Locker) (holds []*latchkey.Hold) {
	t.Helper()
	var all []<-chan acquisition
	for _, lock := range locks {
		all = append(all, lockInBackground(within(t, soon), lock))
	}
	for i, each := range all {
		got := rig.Await(t, 2*soon, fmt.Sprintf("hold %d", i+1), each)
		require.NoError(t, got.err)
		holds = append(holds, got.hold)
	}
	return holds
}

// Goroutines of one program read through a RedLock at once, through one value or several, as two
// programs do.
func TestRedLine_of_readers_is_held_together(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someReader, longTurn)
	other := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(p.clients, someReader)...)
	holds := lockTogether(t, p.lock, p.lock, other)
	for i, hold := range holds {
		require.NoError(t, hold.Err())
		mustUnlock(t, hold)
		for _, later := range holds[i+1:] {
			require.NoError(t, later.Err(), "the release of one is not that of another")
			assert.Positive(t, later.ValidFor())
		}
		if i < len(holds)-1 {
			require.GreaterOrEqual(t, p.held("x"), 2, "a majority") // the third member may come later
		}
	}
	p.comesTo(t, "x", 0)
}

// Readers that wait for a writer wait in line: one of them tries for all. When the writer leaves,
// all come in.
func TestRedLine_of_readers_waits_as_one(t *testing.T) {
	t.Parallel()
	const readers, delay = 30, time.Second
	p := newRedProgram(t, someReader, longTurn)
	lock := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon, RetryDelay: delay}, each(p.clients, someReader)...)
	writer := latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, each(p.masters.clients(t), someWriter)...)
	write := mustLock(t, writer)
	p.comesTo(t, "x", 3)
	p.forget()
	began := time.Now()
	var waiting []<-chan acquisition
	for range readers {
		waiting = append(waiting, lockInLine(within(t, time.Minute), t, lock))
	}
	impatient, cancel := context.WithCancel(t.Context())
	gone := lockInLine(impatient, t, lock)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the end of a wait", gone).err, context.Canceled)
	mustUnlock(t, write)
	var holds []*latchkey.Hold
	for _, each := range waiting {
		got := rig.Await(t, time.Minute, "a reader", each)
		require.NoError(t, got.err)
		holds = append(holds, got.hold)
	}
	// A round costs about six commands, and the pause after it is at least half of the delay. If
	// each reader tried for itself, they would send three times as many commands as there are
	// readers, in one round.
	rounds := 2 + int(time.Since(began)/(delay/2))
	assert.LessOrEqual(t, len(p.sent()), 6*rounds+readers, "commands of all")
	_, err := writer.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	for _, hold := range holds {
		require.NoError(t, hold.Err())
		mustUnlock(t, hold)
	}
	p.comesTo(t, "x", 0)
	mustUnlock(t, mustLock(t, writer))
}

// A reader enters its hold again. If a majority is lost, all that read together lose it.
func TestRedLine_of_readers_is_entered_again_and_lost(t *testing.T) {
	t.Parallel()
	p := newRedProgram(t, someReader, latchkey.Options{Tuning: longTurn.Tuning, Lease: 5 * time.Second})
	holds := lockTogether(t, p.lock, p.lock)
	again, err := p.lock.Lock(holds[0].Context(within(t, soon)))
	require.NoError(t, err)
	mustUnlock(t, again)
	require.NoError(t, holds[0].Err())
	deleteAll := func(admin *rig.Admin) {
		for _, key := range admin.KeysOf("x") {
			admin.Do("DEL", key)
		}
	}
	for i, admin := range p.admins[:2] {
		deleteAll(admin)
		p.takeAway(i, "x") // so that the member cannot be acquired again before the other is lost
	}
	for _, hold := range holds {
		rig.Await(t, soon, "the loss", hold.Lost())
		assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrLost)
	}
	deleteAll(p.admins[0])
	deleteAll(p.admins[1])
	p.comesTo(t, "x", 0)
	mustUnlock(t, mustLock(t, p.lock))
}

// Whether goroutines of one program hold a lock together is what holds for two programs: they do if
// enough of the members can be read for a majority of a RedLock, and all of a MultiLock.
func TestRedLine_of_mixed_members(t *testing.T) {
	t.Parallel()
	red := func(members ...latchkey.Locker) latchkey.Locker {
		return latchkey.NewRedLock(latchkey.RedLockOptions{MemberTimeout: soon}, members...)
	}
	multi := func(members ...latchkey.Locker) latchkey.Locker { return latchkey.NewMultiLock(members...) }
	nested := func(members ...latchkey.Locker) latchkey.Locker {
		return red(multi(members[0]), members[1], members[2])
	}
	for name, c := range map[string]struct {
		of       func(...latchkey.Locker) latchkey.Locker
		readers  int // the other members are mutexes
		together bool
	}{
		"red, one reader":       {red, 1, false},
		"red, two readers":      {red, 2, true},
		"red, of multi-locks":   {nested, 3, true},
		"multi, two readers":    {multi, 2, false},
		"multi, all readers":    {multi, 3, true},
		"multi, of one red":     {func(l ...latchkey.Locker) latchkey.Locker { return multi(red(l...)) }, 3, true},
		"multi, of one red too": {func(l ...latchkey.Locker) latchkey.Locker { return multi(red(l...)) }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMasters(t, 3)
			open := func(clients []*latchkey.Client) latchkey.Locker {
				var members []latchkey.Locker
				for i, client := range clients {
					if i < c.readers {
						members = append(members, someReader(client))
					} else {
						members = append(members, someMutex(client))
					}
				}
				return c.of(members...)
			}
			own := m.clients(t, longTurn)
			lock, another := open(own), open(m.clients(t))
			if c.together {
				for _, hold := range lockTogether(t, lock, another, open(own), lock) {
					defer mustUnlock(t, hold)
				}
				return
			}
			hold := mustLock(t, lock)
			m.comesTo(t, "x", 3)
			for _, other := range []latchkey.Locker{lock, another} {
				_, err := other.TryLock(t.Context())
				require.ErrorIs(t, err, latchkey.ErrNotAcquired)
			}
			waiting, released := lockInLine(within(t, soon), t, lock), time.Now()
			mustUnlock(t, hold)
			got := rig.Await(t, soon, "the next", waiting)
			require.NoError(t, got.err)
			require.True(t, got.at.After(released), "it has waited")
			mustUnlock(t, got.hold)
			m.comesTo(t, "x", 0)
		})
	}
}
