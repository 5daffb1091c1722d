package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A waiter for a read/write lock learns that its turn has come, even if the waiters before it give
// up or have not been heard of for long.

// asksSeldom is a poll ceiling so long that a test notices when a waiter had to poll.
const asksSeldom = 25 * time.Second

// readerNoted waits until the server knows that a reader waits.
func readerNoted(t *testing.T, admin *rig.Admin, name string) {
	t.Helper()
	rig.Eventually(t, soon, "a reader is known to wait", func() error {
		if admin.Int("HEXISTS", "latchkey_rw:{"+name+"}", "readers") == 0 {
			return errors.New("none is")
		}
		return nil
	})
}

// writersQueued waits until n writers are in the queue.
func writersQueued(t *testing.T, admin *rig.Admin, name string, n int64) {
	t.Helper()
	rig.Eventually(t, soon, "the writers are in the queue", func() error {
		if queued := admin.Int("ZCARD", queueKey(name)); queued != n {
			return fmt.Errorf("%d are", queued)
		}
		return nil
	})
}

// The reader whose turn it is after a write has given up, and so does the writer that would try at
// the end of that turn. The next writer still gets the lock soon.
func TestWriter_behind_those_who_give_up(t *testing.T) {
	t.Parallel()
	name, admin := rig.Name(t), rig.NewAdmin(t, rig.Shared())
	open := func() *latchkey.RWLock {
		return connect(t, rig.Shared(), latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: asksSeldom, StaleWaiterTimeout: 3 * asksSeldom}}).NewRWLock(name)
	}
	hold := mustLock(t, open().Writer())
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	reader := lockInBackground(ctx, open().Reader())
	readerNoted(t, admin, name)
	giveUp()
	require.Error(t, rig.Await(t, soon, "the reader", reader).err)
	ctx, giveUp = context.WithCancel(t.Context())
	defer giveUp()
	first := lockInBackground(ctx, open().Writer())
	writersQueued(t, admin, name, 1)
	second := lockInBackground(within(t, 2*soon), open().Writer())
	writersQueued(t, admin, name, 2)
	mustUnlock(t, hold)
	giveUp()
	if got := rig.Await(t, soon, "the first writer", first); got.err == nil { // it gave up too late
		mustUnlock(t, got.hold)
	}
	got := rig.Await(t, soon, "the second writer", second)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
}

// A reader gets its turn after a write that lasted longer than StaleWaiterTimeout, even if its poll
// ceiling is longer than that.
func TestReader_after_a_long_write(t *testing.T) {
	t.Parallel()
	const stale = 500 * time.Millisecond
	admin, client := rig.NewAdmin(t, rig.Shared()), connect(t, rig.Shared())
	patient := connect(t, rig.Shared(), latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: asksSeldom, StaleWaiterTimeout: stale}})
	require.NoError(t, rig.InTime(t, func(int) error { // a busy machine may not let the reader say in time that it waits
		name := rig.Name(t)
		hold := mustLock(t, client.NewRWLock(name).Writer())
		reader := lockInBackground(within(t, 2*soon), patient.NewRWLock(name).Reader())
		readerNoted(t, admin, name)
		writer := lockInBackground(within(t, 2*soon), connect(t, rig.Shared()).NewRWLock(name).Writer())
		writersQueued(t, admin, name, 1)
		rest(2 * stale)
		mustUnlock(t, hold)
		second := writer
		var got acquisition
		var err error
		select {
		case got = <-reader:
		case got = <-writer:
			second, err = reader, errors.New("the writer came first")
		}
		require.NoError(t, got.err)
		mustUnlock(t, got.hold)
		got = rig.Await(t, soon, "the second", second)
		require.NoError(t, got.err)
		mustUnlock(t, got.hold)
		return err
	}))
}
