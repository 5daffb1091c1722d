package tests

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

type contextKey struct{}

// foreignContext is a context of another package. It cannot be compared.
type foreignContext struct {
	context.Context
	_ []int
}

// parents returns contexts for work under a lock. Each has a value.
func parents(t *testing.T) map[string]context.Context {
	t.Helper()
	endless := context.WithValue(context.Background(), contextKey{}, "value")
	ends, cancel := context.WithCancel(endless)
	t.Cleanup(cancel)
	late, cancel := context.WithTimeout(endless, time.Hour)
	t.Cleanup(cancel)
	return map[string]context.Context{
		"endless": endless, "endless again": context.WithoutCancel(ends), "endless, foreign": foreignContext{Context: endless},
		"ends": ends, "has a deadline": late, "foreign": foreignContext{Context: ends},
	}
}

// under calls f for holds of one lock and of several, with every kind of parent.
func under(t *testing.T, f func(t *testing.T, hold *latchkey.Hold, lose func(), parent context.Context)) {
	t.Helper()
	for _, several := range []bool{false, true} {
		for what, parent := range parents(t) {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				admin, client := rig.NewAdmin(t, server), connect(t, server, latchkey.Options{Lease: 5 * time.Second})
				var lock anyLock = client.NewLock(name)
				if several {
					lock = latchkey.NewMultiLock(lock, client.NewLock(name+" too"))
				}
				f(t, mustLock(t, lock), func() { admin.Do("DEL", name) }, parent)
			})
		}
	}
}

// The contexts of a hold, and contexts derived from them, end with it and give the reason, whatever
// their parents are.
func TestContextsEndWithTheHold(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"released", "lost"} {
		t.Run(end, func(t *testing.T) {
			under(t, func(t *testing.T, hold *latchkey.Hold, lose func(), parent context.Context) {
				work, again := hold.Context(parent), hold.Context(parent)
				child, cancel := context.WithTimeout(work, time.Hour)
				defer cancel()
				grandchild, cancelCause := context.WithCancelCause(context.WithValue(child, contextKey{}, "another"))
				defer cancelCause(nil)
				stops := foreignContext{Context: work}
				called, stopped := make(chan struct{}), make(chan struct{})
				context.AfterFunc(grandchild, func() { close(called) })
				require.True(t, context.AfterFunc(work, func() { close(stopped) })())
				all := []context.Context{work, again, child, grandchild, stops}
				for _, ctx := range all {
					require.NoError(t, ctx.Err())
					require.NoError(t, context.Cause(ctx))
				}
				assert.Equal(t, "value", work.Value(contextKey{}))
				deadline, has := parent.Deadline()
				own, too := work.Deadline()
				assert.Equal(t, has, too)
				assert.Equal(t, deadline, own)

				cause := latchkey.ErrNotHeld
				if end == "lost" {
					cause = latchkey.ErrLost
					lose()
				} else {
					mustUnlock(t, hold)
				}
				for _, ctx := range append(all, hold.Context(parent)) {
					rig.Await(t, soon, "the end", ctx.Done())
					assert.ErrorIs(t, ctx.Err(), context.Canceled)
					assert.ErrorIs(t, context.Cause(ctx), cause)
				}
				rig.Await(t, soon, "the call", called)
				require.NoError(t, parent.Err())
				require.NoError(t, context.WithoutCancel(work).Err())
				assert.Empty(t, stopped)
			})
		})
	}
}

// A context that ends with its parent ends nothing else.
func TestContextsEndWithTheirParents(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	hold := mustLock(t, connect(t, server).NewLock(rig.Name(t)))
	why := errors.New("enough")
	parent, cancel := context.WithCancelCause(t.Context())
	work, other := hold.Context(parent), hold.Context(context.Background())
	cancel(why)
	rig.Await(t, soon, "the end", work.Done())
	require.ErrorIs(t, context.Cause(work), why)
	require.ErrorIs(t, context.Cause(hold.Context(parent)), why)
	require.NoError(t, other.Err())
	require.NoError(t, hold.Context(t.Context()).Err())
	mustUnlock(t, hold)
}

// Acquiring a lock under a context of its hold is a re-entry, even if a context of another hold is
// in between.
func TestContextsCarryTheHold(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	client := connect(t, server)
	for what, parent := range parents(t) {
		t.Run(what, func(t *testing.T) {
			outer, inner := client.NewLock(rig.Name(t)), client.NewLock(rig.Name(t)+" inside")
			first := mustLock(t, outer)
			second, err := inner.Lock(first.Context(parent))
			require.NoError(t, err)
			work := second.Context(first.Context(parent))
			for _, lock := range []*latchkey.Lock{outer, inner} {
				again, err := lock.TryLock(work)
				require.NoError(t, err)
				assert.Equal(t, 2, countOf(again))
				mustUnlock(t, again)
			}
			mustUnlock(t, first)
			rig.Await(t, soon, "the outer hold is over", work.Done())
			mustUnlock(t, second)
		})
	}
}

// A long hold makes a context for each piece of work under it. Contexts that nobody uses any more
// cost nothing, unless each has a parent of its own that has not ended.
func TestContextsAreNotKept(t *testing.T) {
	hold := mustLock(t, connect(t, rig.Shared()).NewLock(rig.Name(t)))
	const calls = 10_000
	for what, parent := range parents(t) {
		if what == "foreign" {
			continue // it may be a different one each time
		}
		before := memoryInUse()
		for range calls {
			_ = hold.Context(parent)
		}
		kept := (memoryInUse() - before) / calls
		t.Logf("%s: %d bytes", what, kept)
		assert.Less(t, kept, int64(50), what)
	}
	before, goroutines := memoryInUse(), runtime.NumGoroutine()
	for i := range calls {
		parent, cancel := context.WithCancel(context.Background())
		_ = hold.Context(parent)
		cancel()
		if i%100 == 0 { // the runtime keeps the memory of ended goroutines
			rig.Eventually(t, soon, "the goroutines end", func() error {
				if n := runtime.NumGoroutine() - goroutines; n > 100 {
					return fmt.Errorf("%d more than before", n)
				}
				return nil
			})
		}
	}
	rig.Eventually(t, soon, "contexts whose parents have ended are forgotten", func() error {
		if kept := (memoryInUse() - before) / calls; kept >= 50 {
			return fmt.Errorf("%d bytes of each are kept", kept)
		}
		return nil
	})
	require.NoError(t, hold.Err())
	mustUnlock(t, hold)
}

// The same for contexts under another hold, as for work under two locks.
func TestContextsUnderAnotherHoldAreNotKept(t *testing.T) {
	client, name := connect(t, rig.Shared()), rig.Name(t)
	outer, inner := mustLock(t, client.NewLock(name)), mustLock(t, client.NewLock(name+" inside"))
	const calls = 10_000
	for what, parent := range parents(t) {
		if what == "foreign" {
			continue // it may be a different one each time
		}
		before := memoryInUse()
		for range calls {
			_ = inner.Context(outer.Context(parent))
		}
		kept := (memoryInUse() - before) / calls
		t.Logf("%s: %d bytes", what, kept)
		assert.Less(t, kept, int64(50), what)
	}
	mustUnlock(t, inner)
	mustUnlock(t, outer)
}

// memoryInUse returns the size of the heap after a collection.
func memoryInUse() int64 {
	var measured []int64
	for range 3 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		measured = append(measured, int64(stats.HeapAlloc))
	}
	return slices.Min(measured)
}
