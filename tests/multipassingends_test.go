package tests

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// How waiting in line for a MultiLock ends without a hold that was passed on.

// A waiter in line whose time is over gets an error that names the member at fault: the one that the
// first in line waits for, or the first member if their own program holds all.
func TestMultiPassing_names_the_member(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, latchkey.Options{})
	rival := mustLock(t, connect(t, rig.Shared()).NewLock(p.name+":b"))
	front := lockInBackground(within(t, 5*soon), p.lock)
	awaitWaiter(t, p.admin, p.name+":b")
	told := func(member string) {
		t.Helper()
		wait, all := refusedFrom(t, 50*time.Millisecond, func(wait time.Duration) (all error) {
			var waiting []<-chan acquisition
			for range 3 {
				waiting = append(waiting, lockInBackground(t.Context(), p.lock, latchkey.Wait(wait)))
			}
			for _, each := range waiting {
				all = errors.Join(all, rig.Await(t, 3*soon, "the error", each).err)
			}
			return all
		})
		require.NotErrorIs(t, all, context.DeadlineExceeded)
		each := `latchkey: lock "multi\(.*\)": lock "` + regexp.QuoteMeta(p.name+member) + `": not acquired.*; the wait of ` + wait.String() + ` is over`
		matches(t, strings.Join([]string{each, each, each}, "\n"), all)
	}
	told(":b")
	mustUnlock(t, rival)
	got := rig.Await(t, soon, "the front", front)
	require.NoError(t, got.err)
	told(":a")
	mustUnlock(t, got.hold)
}

// While the first in line waits for a member, another member becomes impossible to acquire. Callers
// that arrive then get the error that says so.
func TestMultiPassing_of_what_cannot_be_had(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, latchkey.Options{})
	rival := mustLock(t, connect(t, rig.Shared()).NewLock(p.name+":a"))
	front := lockInBackground(within(t, 5*soon), p.lock)
	queued(t, p.admin, p.name+":a", 1)
	p.admin.Do("RPUSH", p.name+":b", "1")
	wait := 100 * time.Millisecond
	rig.Eventually(t, 3*soon, "the error", func() error {
		wait *= 2
		if _, err := p.lock.Lock(t.Context(), latchkey.Wait(wait)); !errors.Is(err, latchkey.ErrWrongKind) {
			return fmt.Errorf("it is %w", err)
		}
		return nil
	})
	mustUnlock(t, rival)
	require.ErrorIs(t, rig.Await(t, soon, "the front", front).err, latchkey.ErrWrongKind)
}

// A member is taken from the holder long before its next renewal. The holder and the waiters in line
// behind it notice soon.
func TestMultiPassing_of_a_member_that_was_taken(t *testing.T) {
	t.Parallel()
	for what, options := range map[string][]latchkey.LockOption{"renewed": nil, "a fixed lease": {latchkey.Lease(time.Minute)}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newHotPair(t, lockKind, latchkey.Options{Lease: time.Minute, PollCeiling: time.Second})
			hold := mustLock(t, p.lock, options...)
			waiting := lockInLine(within(t, time.Minute), t, p.lock)
			forced, err := connect(t, rig.Shared()).ForceUnlock(t.Context(), p.name+":b")
			require.NoError(t, err)
			require.True(t, forced)
			next := rig.Await(t, soon, "the waiter", waiting)
			require.NoError(t, next.err)
			assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
			mustUnlock(t, next.hold)
			rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
		})
	}
}

// A client is closed while its goroutines wait in line.
func TestMultiPassing_of_a_closed_client(t *testing.T) {
	t.Parallel()
	p := newHotPair(t, lockKind, latchkey.Options{})
	rival := mustLock(t, connect(t, rig.Shared()).NewLock(p.name+":a"))
	var waiting []<-chan acquisition
	for range 3 {
		waiting = append(waiting, lockInLine(within(t, soon), t, p.lock))
	}
	require.NoError(t, p.client.Close(t.Context()))
	for _, each := range waiting {
		require.ErrorIs(t, rig.Await(t, soon, "the error", each).err, latchkey.ErrClosed)
	}
	mustUnlock(t, rival)
	rig.Eventually(t, soon, "nothing is left", free(p.admin, p.name))
}
