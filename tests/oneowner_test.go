package tests

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Several goroutines of one owner enter and leave a lock, each in its own time.

// releasedMeanwhile unlocks a hold while the reply to an earlier command is held back. Unlock has
// begun when the reply is released, and waits for it.
func releasedMeanwhile(t *testing.T, hold *latchkey.Hold, earlier *rig.Held) <-chan error {
	t.Helper()
	rig.Await(t, soon, "the command is executed", earlier.Arrived)
	work, unlocked := hold.Context(t.Context()), make(chan error, 1)
	go func() { unlocked <- hold.Unlock(context.Background()) }()
	rig.Await(t, soon, "Unlock begins", work.Done())
	earlier.Release()
	return unlocked
}

// None is refused because another one releases the lock.
func TestGoroutinesOfOneOwner(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, k := range append(kinds, readKind) {
		if !k.reentrant {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			client := connect(t, server)
			lock, task := k.open(client, name), latchkey.WithOwner(within(t, time.Minute), client.NewOwner())
			all := rig.Goroutines(t)
			for range 8 {
				all.Go(func() {
					for range rig.Sized(100) {
						hold, err := lock.Lock(task)
						if !assert.NoError(t, err) {
							return
						}
						assert.NoError(t, hold.Unlock(task))
					}
				})
			}
			all.Wait()
			assert.NoError(t, free(rig.NewAdmin(t, server), name)())
		})
		t.Run(k.name+", the others release it during the request", func(t *testing.T) {
			t.Parallel()
			name, tap := rig.Name(t), rig.NewTap(t, server)
			client := connectVia(t, server, tap.Addr(), persistent)
			lock, task := k.open(client, name), latchkey.WithOwner(within(t, time.Minute), client.NewOwner())
			hold, err := lock.Lock(task)
			require.NoError(t, err)
			reply := tap.HoldReply(rig.Mentions(name))
			entering := lockInBackground(task, lock)
			unlocked := releasedMeanwhile(t, hold, reply)
			entered := rig.Await(t, soon, "the re-entry", entering)
			require.NoError(t, entered.err)
			require.NoError(t, rig.Await(t, soon, "Unlock", unlocked))
			require.NoError(t, entered.hold.Err())
			assert.Equal(t, 1, countOf(entered.hold))
			admin := rig.NewAdmin(t, server)
			assert.EqualValues(t, 1, countInRedis(t, admin, name))
			mustUnlock(t, entered.hold)
			assert.NoError(t, free(admin, name)())
		})
	}
}

// An owner reads while another goroutine of it releases its write hold. It reads under that hold,
// or waits like any other reader.
func TestGoroutinesOfOneOwner_read_and_write(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	rw, task := client.NewRWLock(name), latchkey.WithOwner(within(t, time.Minute), client.NewOwner())
	for range rig.Sized(500) {
		writer, err := rw.Writer().Lock(task)
		require.NoError(t, err)
		readers := []<-chan acquisition{lockInBackground(task, rw.Reader()), lockInBackground(task, rw.Reader())}
		mustUnlock(t, writer)
		for _, each := range readers {
			read := rig.Await(t, soon, "a reader", each)
			require.NoError(t, read.err)
			mustUnlock(t, read.hold)
		}
	}
	assert.NoError(t, free(rig.NewAdmin(t, server), name)())
}

// Reads under one write hold come and go. None is refused, and each lasts until its Unlock.
func TestReadsUnderAWriter(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	// readers read under a write hold, until they have read that often or the context ends.
	readers := func(ctx context.Context, t *testing.T, lock anyLock, times int) *sync.WaitGroup {
		all := rig.Goroutines(t)
		for range 8 {
			all.Go(func() {
				for range times {
					hold, err := lock.TryLock(ctx)
					if ctx.Err() != nil && err != nil || !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, hold.Unlock(context.Background()))
				}
			})
		}
		return all
	}
	t.Run("and goes on", func(t *testing.T) {
		t.Parallel()
		name := rig.Name(t)
		rw, admin := connect(t, server).NewRWLock(name), rig.NewAdmin(t, server)
		writer := mustLock(t, rw.Writer())
		readers(writer.Context(within(t, time.Minute)), t, rw.Reader(), rig.Sized(100)).Wait()
		assert.EqualValues(t, 1, countInRedis(t, admin, name), "the write hold alone")
		mustUnlock(t, writer)
		assert.NoError(t, free(admin, name)())
	})
	t.Run("which is downgraded", func(t *testing.T) {
		t.Parallel()
		name := rig.Name(t)
		rw, admin := connect(t, server).NewRWLock(name), rig.NewAdmin(t, server)
		for range rig.Sized(50) {
			writer := mustLock(t, rw.Writer())
			all := readers(writer.Context(within(t, time.Minute)), t, rw.Reader(), 1<<20)
			rest(time.Millisecond)
			read, err := writer.Downgrade(t.Context())
			require.NoError(t, err)
			all.Wait()
			mustUnlock(t, read)
			rig.Eventually(t, soon, "what was requested in the end is undone", free(admin, name))
		}
	})
}

// A try of an owner waits for other calls of it, but not until each of them has waited for the
// server.
func TestTriesOfOneOwner(t *testing.T) {
	t.Parallel()
	const budget = 2 * time.Second
	server := rig.Shared()
	for what, open := range map[string]func(*latchkey.Client, string) (outer, inner anyLock){
		"enter a lock": func(c *latchkey.Client, name string) (outer, inner anyLock) {
			return c.NewLock(name), c.NewLock(name)
		},
		"read under a writer": func(c *latchkey.Client, name string) (outer, inner anyLock) {
			return c.NewRWLock(name).Writer(), c.NewRWLock(name).Reader()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name, tap := rig.Name(t), rig.NewTap(t, server)
			outer, inner := open(connectVia(t, server, tap.Addr(), latchkey.Options{RetryBudget: budget}), name)
			hold := mustLock(t, outer)
			defer unlockInTheEnd(t, hold)
			replies := tap.HoldReplies(rig.Mentions(name))
			defer replies.Release()
			tries := make(chan error, 10)
			for range cap(tries) {
				go func() {
					_, err := inner.TryLock(hold.Context(context.Background()))
					tries <- err
				}()
			}
			begun := time.Now()
			for range cap(tries) {
				err := rig.Await(t, 2*budget+leeway-time.Since(begun), "a try", tries)
				require.ErrorIs(t, err, latchkey.ErrUnavailable)
			}
		})
	}
}
