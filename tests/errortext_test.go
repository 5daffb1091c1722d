package tests

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The texts of errors. Each test covers one request of users.

// text checks the text of an error against a regular expression.
func text(t *testing.T, want string, err error) {
	t.Helper()
	require.Error(t, err)
	assert.Regexp(t, want, err.Error())
}

// says is text for checks that are retried.
func says(want string, err error) error {
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		return fmt.Errorf("%w, which is not %s", err, want)
	}
	return nil
}

// The error for a busy lock names the holder and the rest of the lease, after an attempt and after a wait. The client
// sends no extra query for that.
func TestTextBusy(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, k := range []kind{mutexKind, lockKind, fencedKind, spinKind, fairKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			hold := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(time.Minute))
			lock := k.open(connect(t, server), name)
			holder := hold.Owner().String()
			_, err := lock.TryLock(t.Context())
			text(t, `^latchkey: try lock "`+name+`": not acquired: held by `+holder+`, 5\ds left$`, err)
			left := `, 5\ds left`
			if k.queued {
				left = "" // its reply says when to try again instead
			}
			// A wait that ends while a query is in flight says that too, and the check is retried.
			assert.NoError(t, rig.InTime(t, func(int) error {
				_, err := lock.Lock(t.Context(), latchkey.Wait(time.Second))
				return says(`^latchkey: lock "`+name+`": not acquired: held by `+holder+left+`; the wait of 1s is over$`, err)
			}))
			assert.NoError(t, rig.InTime(t, func(int) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := lock.Lock(ctx)
				return says(`not acquired: held by `+holder+left+`; context deadline exceeded$`, err)
			}))
		})
	}
}

// The error for a lock that stays taken after its release says who released it.
func TestTextKept(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	for _, k := range []kind{mutexKind, lockKind, fairKind} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name, client := rig.Name(t), connect(t, server)
			hold := mustLock(t, k.open(client, name), latchkey.AtLeast(time.Minute))
			mustUnlock(t, hold)
			for _, other := range []*latchkey.Client{client, connect(t, server)} {
				_, err := k.open(other, name).TryLock(t.Context())
				text(t, `^latchkey: try lock "`+name+`": not acquired: released by `+hold.Owner().String()+
					`, kept until it expires, 5\ds left$`, err)
			}
		})
	}
}

// A caller that tries to acquire a lock inside its own Do with the outer context gets an error that says what to do.
func TestTextHeldByThisClient(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.open(connect(t, server), rig.Name(t))
		outer := t.Context()
		require.NoError(t, lock.Do(outer, func(context.Context) error {
			const want = `not acquired: held by this client.*: to enter it again, use the context of its hold`
			_, err := lock.TryLock(outer)
			text(t, want, err)
			_, err = lock.Lock(outer, latchkey.Wait(time.Second))
			text(t, want+`; the wait of 1s is over$`, err)
			return nil
		}))
	})
}

// The error for a key of another kind names the key and its kind.
func TestTextWrongKind(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	mustLock(t, client.NewLock(name))
	_, err := connect(t, server).NewMutex(name).TryLock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrWrongKind)
	text(t, `^latchkey: try lock: "`+name+`" is a lock, not a mutex$`, err)
	_, err = connect(t, server).NewRWLock(name).Writer().TryLock(t.Context())
	text(t, `^latchkey: try lock: "`+name+`" is a lock, not a read/write lock$`, err)
}

// The error of an extension says only once that the hold is over. For an invalid extension it names operation and lock.
func TestTextExtend(t *testing.T) {
	name := rig.Name(t)
	hold := mustLock(t, connect(t, rig.Shared()).NewLock(name))
	text(t, `^latchkey: extend "`+name+`": invalid argument: the extension 0s`, hold.Extend(t.Context(), 0))
	mustUnlock(t, hold)
	text(t, `^latchkey: extend "`+name+`": not held$`, hold.Extend(t.Context(), time.Minute))
}

// The error for an unreachable server says that it is unavailable, and why.
func TestTextUnavailable(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	client := connect(t, server, brief)
	server.Kill(t)
	_, err := client.NewLock("x").TryLock(t.Context())
	text(t, `^latchkey: try lock "x": server unavailable: .*`, err)
	_, err = client.NewLock("x").TryLock(t.Context())
	text(t, `^latchkey: try lock "x": server unavailable: dial tcp .*connection refused$`, err)
}
