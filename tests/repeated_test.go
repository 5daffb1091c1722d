package tests

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// repeatedAfter lets the server execute the next command for a name but loses the reply, and
// refuses the repetitions for d.
func repeatedAfter(tap *rig.Tap, name string, d time.Duration) {
	executed := tap.Lose(1, rig.Mentions(name), rig.Cut)
	stop := tap.Refuse(rig.Mentions(name), "LOADING later")
	go func() {
		<-executed
		time.AfterFunc(d, stop)
	}()
}

// notLongerThan checks that the client believes in a hold for no longer than the server keeps it.
func notLongerThan(t *testing.T, believed func() time.Duration, kept func(context.Context) (time.Duration, error)) {
	t.Helper()
	asked := time.Now()
	valid := believed()
	left, err := kept(t.Context())
	require.NoError(t, err)
	t.Logf("valid for %v, the server says %v", valid, left)
	assert.LessOrEqual(t, valid, left+time.Since(asked)+time.Millisecond)
	assert.Positive(t, valid)
}

// A downgrade whose reply is lost is repeated, and finds that it was already done: the read lease
// began with the first attempt.
func TestRepeatedDowngradeProlongsNothing(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr(), persistent)
	warm, err := mustLock(t, client.NewRWLock(name+"warm").Writer()).Downgrade(t.Context())
	require.NoError(t, err)
	mustUnlock(t, warm)
	writer := mustLock(t, client.NewRWLock(name).Writer())
	repeatedAfter(tap, name, 300*time.Millisecond)
	reader, err := writer.Downgrade(t.Context())
	require.NoError(t, err)
	notLongerThan(t, reader.ValidFor, func(ctx context.Context) (time.Duration, error) {
		return remainingLease(ctx, connect(t, server).NewRWLock(name).Reader())
	})
	mustUnlock(t, reader)
}

// The same holds for the lease of a permit: it begins when it was first set.
func TestRepeatedUpdateOfALeaseProlongsNothing(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	s := newPermits(t, connect(t, server), 1)
	tap := rig.NewTap(t, server)
	mine := connectVia(t, server, tap.Addr(), persistent).NewPermitSemaphore(s.Name())
	p, err := mine.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, mine.SetLease(t.Context(), p.ID(), time.Minute)) // this loads the script
	repeatedAfter(tap, s.Name(), 300*time.Millisecond)
	require.NoError(t, mine.SetLease(t.Context(), p.ID(), 20*time.Second))
	notLongerThan(t, p.ValidFor, func(ctx context.Context) (time.Duration, error) { return s.RemainingLease(ctx, p.ID()) })
	require.NoError(t, p.Release(t.Context()))
}

// An operation that found nothing to do is over: a late copy does nothing to an object that
// somebody else has created or deleted since.
func TestLateCopyOfWhatFoundNothing(t *testing.T) {
	server := rig.Shared()
	for what, k := range map[string]struct {
		there bool // whether the object exists when the operation comes
		do    func(ctx context.Context, c *latchkey.Client, name string) (bool, error)
	}{
		"release if exists": {false, func(ctx context.Context, c *latchkey.Client, name string) (bool, error) {
			return c.NewSemaphore(name).ReleaseIfExists(ctx, 5)
		}},
		"delete": {false, func(ctx context.Context, c *latchkey.Client, name string) (bool, error) {
			return c.NewSemaphore(name).Delete(ctx)
		}},
		"set ttl": {false, func(ctx context.Context, c *latchkey.Client, name string) (bool, error) {
			return c.NewSemaphore(name).SetTTL(ctx, time.Minute)
		}},
		"try set permits": {true, func(ctx context.Context, c *latchkey.Client, name string) (bool, error) {
			return c.NewSemaphore(name).TrySetPermits(ctx, 5)
		}},
		"try set permits with ids": {true, func(ctx context.Context, c *latchkey.Client, name string) (bool, error) {
			return c.NewPermitSemaphore(name).TrySetPermits(ctx, 5)
		}},
	} {
		t.Run(strings.ReplaceAll(what, " ", "_"), func(t *testing.T) {
			name := rig.Name(t)
			var somebody interface {
				TrySetPermits(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
				Delete(ctx context.Context) (bool, error)
			} = connect(t, server).NewSemaphore(name)
			if strings.HasSuffix(what, "with ids") {
				somebody = connect(t, server).NewPermitSemaphore(name)
			}
			turn := func(there bool) {
				var done bool
				var err error
				if there {
					done, err = somebody.TrySetPermits(t.Context(), 10)
				} else {
					done, err = somebody.Delete(t.Context())
				}
				require.NoError(t, err)
				require.True(t, done)
			}
			if k.there {
				turn(true)
			}
			tap := rig.NewTap(t, server)
			mine := connectVia(t, server, tap.Addr())
			first := tap.Lose(1, rig.Mentions(name), rig.CutRequest)
			done, err := k.do(t.Context(), mine, name)
			require.NoError(t, err)
			require.False(t, done)
			turn(!k.there)
			admin := rig.NewAdmin(t, server)
			before := admin.Dump(name)
			admin.Do(rig.Await(t, soon, "the first copy", first).Args...)
			after := admin.Dump(name)
			assert.Equal(t, before[name], after[name])
			assert.Len(t, after, len(before))
		})
	}
}

// When one owner uses both sides at the same time, all calls return.
func TestOneOwnerOnBothSides(t *testing.T) {
	t.Parallel()
	client := connect(t, rig.Shared())
	rw := client.NewRWLock(rig.Name(t))
	ctx := latchkey.WithOwner(within(t, time.Minute), client.NewOwner())
	stop := time.Now().Add(rig.Lasting(time.Second))
	var all sync.WaitGroup
	unlock := func(hold *latchkey.Hold, err error) {
		if err == nil {
			_ = hold.Unlock(ctx)
		}
	}
	for _, once := range []func(){
		func() { unlock(rw.Writer().TryLock(ctx)) },
		func() { unlock(rw.Reader().TryLock(ctx)) },
		func() {
			if hold, err := rw.Writer().TryLock(ctx); err == nil {
				unlock(hold.Downgrade(ctx))
			}
		},
	} {
		for range 4 {
			all.Go(func() {
				for time.Now().Before(stop) {
					once()
				}
			})
		}
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	rig.Await(t, 2*soon, "their end", over)
}
