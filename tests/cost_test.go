package tests

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// An uncontended lock and unlock are two commands and nothing else, as counted by the server.
func TestLockAndUnlockAreTwoCommands(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	eachKind(t, func(t *testing.T, k kind) {
		lock := k.open(connect(t, server), k.name)
		mustUnlock(t, mustLock(t, lock))

		before, monitor := admin.CommandStats(), admin.Watch()
		for range 10 {
			mustUnlock(t, mustLock(t, lock))
		}
		commands, stats := monitor.Stop(), admin.Since(before)
		t.Logf("ten times lock and unlock: %v", stats)
		// On a slow machine the client probes a connection that was silent for a second, or
		// Sentinel asks who is master.
		commands = slices.DeleteFunc(commands, func(c string) bool {
			return strings.HasPrefix(c, `"PING"`) || strings.HasPrefix(c, `"ROLE"`)
		})
		assert.Len(t, commands, 20)
		sent := stats["evalsha"]
		if !k.reentrant {
			sent += stats["set"] // the plain SET is not a script
		}
		assert.Equal(t, int64(20), sent)
		assert.Zero(t, stats["eval"], "the text of a script was sent again")
		assert.Zero(t, stats["subscribe"]+stats["ssubscribe"])
	})
}

// An uncontended lock and unlock allocate few objects, even if the lock is created for each use:
// the lock and its names, the owner and its name. The test counts objects, because their number
// does not depend on the machine.
func TestLockAndUnlockAllocateLittle(t *testing.T) {
	options := []latchkey.LockOption{latchkey.Lease(time.Minute)}
	most := 10.0
	if rig.RaceDetector {
		most = 16 // it discards objects kept for reuse
	}
	client := connect(t, rig.Shared())
	for what, open := range map[string]func(string) latchkey.Locker{
		"Lock":  func(name string) latchkey.Locker { return client.NewLock(name) },
		"Mutex": func(name string) latchkey.Locker { return client.NewMutex(name) },
	} {
		name := rig.Name(t) + what
		allocations := testing.AllocsPerRun(300, func() {
			hold, err := open(name).Lock(context.Background(), options...)
			if err != nil || hold.Unlock(context.Background()) != nil {
				t.Error("not acquired, or not released")
			}
		})
		t.Logf("%s: %v", what, allocations)
		assert.LessOrEqual(t, allocations, most, what)
	}
}

// A hold costs its client little memory: the state for waiters is created only when somebody waits.
func TestHoldsCostLittleMemory(t *testing.T) {
	rig.Need(t, rig.Stats) // not available in this process, where the memory of the server would count too
	const many, most = 2000, 1024
	client := connect(t, rig.Shared())
	ctx, name := context.Background(), rig.Name(t)
	holds := make([]*latchkey.Hold, 0, many)
	before := heapInUse()
	for i := range many {
		hold, err := client.NewLock(name + strconv.Itoa(i)).Lock(ctx)
		require.NoError(t, err)
		holds = append(holds, hold)
	}
	each := (int64(heapInUse()) - int64(before)) / many //nolint:gosec // the heap is never that large
	t.Logf("%d bytes for each renewed hold", each)
	assert.LessOrEqual(t, each, int64(most))
	unlockAll(t, holds)
}

// The first lock and unlock of a client are also two commands, even on a server that does not know
// the scripts: the client sends their text at once.
func TestFirstLockAndUnlockAreTwoCommands(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Stats)
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	eachKind(t, func(t *testing.T, k kind) {
		admin.Do("SCRIPT", "FLUSH")
		lock := k.open(connect(t, server), k.name)
		before := admin.CommandStats()
		mustUnlock(t, mustLock(t, lock))
		stats := admin.Since(before)
		assert.Zero(t, stats["evalsha"])
		if k.reentrant {
			assert.Equal(t, int64(2), stats["eval"])
		} else {
			assert.Equal(t, int64(1), stats["eval"], "the plain SET is no script")
		}
	})
}

// A client sends the text of a script to a node once, even if the node knows it from other clients.
func TestTextsAreSentOnce(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		server := rig.Shared()
		for range 2 {
			tap := rig.NewTap(t, server)
			lock := k.open(connectVia(t, server, tap.Addr()), rig.Name(t))
			var texts []int
			for range 3 {
				tap.Forget()
				mustUnlock(t, mustLock(t, lock))
				texts = append(texts, len(tap.Executed(rig.Named("EVAL"))))
			}
			if k.reentrant {
				assert.Equal(t, []int{2, 0, 0}, texts)
			} else {
				assert.Equal(t, []int{1, 0, 0}, texts)
			}
		}
	})
}

// The same as the first test without MONITOR, on every backend: the test counts what leaves the
// client.
func TestLockAndUnlockSendTwoCommands(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		tap := rig.NewTap(t, rig.Shared())
		lock := k.open(connectVia(t, rig.Shared(), tap.Addr()), rig.Name(t))
		mustUnlock(t, mustLock(t, lock))
		tap.Forget()
		mustUnlock(t, mustLock(t, lock))
		assert.Len(t, tap.Commands(), 2)
	})
}

// An attempt to acquire a busy lock is one command. For a mutex it is two: a refused SET does not
// tell who holds the key.
func TestTryAtABusyLockIsOneCommand(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		tap := rig.NewTap(t, server)
		hold := mustLock(t, k.open(connect(t, server), name))
		lock := k.open(connectVia(t, server, tap.Addr()), name)
		_, err := lock.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		tap.Forget()
		_, err = lock.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		if k.reentrant {
			assert.Len(t, tap.Commands(), 1)
		} else {
			assert.Len(t, tap.Commands(), 2)
		}
		mustUnlock(t, hold)
	})
}

// No call fails if the script cache is emptied again and again while locks are used.
func TestEmptyScriptCache(t *testing.T) {
	t.Parallel()
	server := rig.Fresh(t)
	admin := rig.NewAdmin(t, server)
	eachKind(t, func(t *testing.T, k kind) {
		lock := k.open(connect(t, server), k.name)
		for range rig.Sized(20) {
			admin.Do("SCRIPT", "FLUSH")
			hold, err := lock.Lock(t.Context())
			require.NoError(t, err)
			admin.Do("SCRIPT", "FLUSH")
			require.NoError(t, hold.Extend(t.Context(), defaultLease))
			admin.Do("SCRIPT", "FLUSH")
			require.NoError(t, hold.Unlock(t.Context()))
			_, err = lock.Inspect(t.Context())
			require.NoError(t, err)
		}
	})
}

// All keys that a script declares contain the name of the lock.
func TestKeysAreDeclared(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server, name := rig.Shared(), rig.Name(t)
		tap := rig.NewTap(t, server)
		lock := k.open(connectVia(t, server, tap.Addr()), name)
		mustUnlock(t, mustLock(t, lock))
		for _, command := range tap.Commands() {
			if strings.HasPrefix(command.Name(), "EVAL") {
				for _, key := range declared(t, command) {
					assert.Contains(t, key, name)
				}
			}
		}
	})
}

func declared(t *testing.T, c rig.Command) []string {
	t.Helper()
	n := int(c.Args[2][0] - '0')
	require.LessOrEqual(t, n, 9)
	return c.Args[3 : 3+n]
}
