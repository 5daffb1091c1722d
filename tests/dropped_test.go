package tests

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// holdOption is an option of what is renewed.
type holdOption interface {
	latchkey.LockOption
	latchkey.PermitOption
}

// renewedKinds take something of every kind that is renewed, and drop it. The result is a way to
// see whether it is held.
func renewedKinds(t *testing.T, options ...holdOption) map[string]func(c *latchkey.Client, name string) (kept any) {
	t.Helper()
	var permits []latchkey.PermitOption
	var locks []latchkey.LockOption
	for _, o := range options {
		permits, locks = append(permits, o), append(locks, o)
	}
	all := map[string]func(c *latchkey.Client, name string) any{
		"Election": func(c *latchkey.Client, name string) any { return mustLead(t, c.NewElection(name), "value", locks...) },
		"PermitSemaphore": func(c *latchkey.Client, name string) any {
			s := c.NewPermitSemaphore(name)
			require.NoError(t, s.SetPermits(within(t, soon), 1))
			p, err := s.Acquire(within(t, soon), permits...)
			require.NoError(t, err)
			return p
		},
		"FairSemaphore": func(c *latchkey.Client, name string) any {
			s := c.NewFairSemaphore(name)
			require.NoError(t, s.SetPermits(within(t, soon), 1))
			p, err := s.Acquire(within(t, soon), permits...)
			require.NoError(t, err)
			return p
		},
	}
	for _, k := range append(kinds, readKind, multiKind, redKind) {
		all[k.name] = func(c *latchkey.Client, name string) any { return mustLock(t, k.open(c, name), locks...) }
	}
	return all
}

// reported collects the names of holds that were reported as dropped.
type reported struct {
	mu    sync.Mutex
	names map[string]bool
}

func (r *reported) logger() *slog.Logger {
	r.names = map[string]bool{}
	return slog.New(logFunc(func(line slog.Record) {
		if line.Level < slog.LevelError {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		line.Attrs(func(a slog.Attr) bool {
			if a.Key == "lock" {
				r.names[a.Value.String()] = true
			}
			return true
		})
	}))
}

// comesTo collects garbage until the report of a name is there.
func (r *reported) comesTo(t *testing.T, name string) {
	t.Helper()
	rig.Eventually(t, soon, "the report of "+name, func() error {
		runtime.GC()
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.names[name] {
			return errors.New("none")
		}
		return nil
	})
}

// A hold that the program drops is reported once it was renewed, without an option. One that is
// still used is not.
func TestDroppedHoldIsReported(t *testing.T) {
	t.Parallel()
	server, all := rig.Shared(), renewedKinds(t)
	dropped := func(t *testing.T) (*reported, *latchkey.Client) {
		t.Helper()
		log := &reported{}
		return log, connect(t, server, latchkey.Options{Logger: log.logger(), Lease: 9 * time.Second})
	}
	for what, take := range all {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			log, client := dropped(t)
			name := rig.Name(t)
			used := take(client, name+" used")
			func() { _ = take(client, name) }()
			switch what {
			case multiKind.name:
				name = multiKind.open(client, name).Name()
			case redKind.name:
				name = redKind.open(client, name).Name()
			}
			log.comesTo(t, name)
			log.mu.Lock()
			defer log.mu.Unlock()
			assert.Len(t, log.names, 1)
			runtime.KeepAlive(used)
		})
	}
	t.Run("re-entry", func(t *testing.T) {
		t.Parallel()
		log, client := dropped(t)
		lock := client.NewLock(rig.Name(t))
		hold := mustLock(t, lock)
		func() {
			_, err := lock.TryLock(hold.Context(t.Context()))
			require.NoError(t, err)
		}()
		log.comesTo(t, lock.Name())
		runtime.KeepAlive(hold)
	})
}

// Options.MaxHold ends what the program has forgotten to release, of every kind. A call may set a
// longer limit of its own, and a fixed lease is its own limit.
func TestMaxHoldOfAClient(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	options := latchkey.Options{MaxHold: 700 * time.Millisecond, Lease: 3 * time.Second}
	client := connect(t, server, options)
	longer, fixed := renewedKinds(t, latchkey.MaxHold(time.Hour)), renewedKinds(t, latchkey.Lease(time.Hour))
	holdOf := func(taken any) interface {
		Err() error
		Lost() <-chan struct{}
	} {
		if p, is := taken.(*latchkey.Permit); is {
			return p
		}
		return taken.(interface {
			Err() error
			Lost() <-chan struct{}
		})
	}
	for what, take := range renewedKinds(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			taken := holdOf(take(client, name+what))
			own, lease := holdOf(longer[what](client, name+what+" longer")), holdOf(fixed[what](client, name+what+" fixed"))
			rig.Await(t, soon, "the limit", taken.Lost())
			require.ErrorIs(t, taken.Err(), latchkey.ErrMaxHold)
			take(connect(t, server), name+what) // it is free
			assert.NoError(t, own.Err())
			assert.NoError(t, lease.Err())
		})
	}
	t.Run("re-entry", func(t *testing.T) {
		t.Parallel()
		lock := client.NewLock(rig.Name(t))
		outer := mustLock(t, lock, latchkey.MaxHold(time.Hour))
		inner, err := lock.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		rest(options.MaxHold + 300*time.Millisecond)
		assert.NoError(t, inner.Err(), "the outer hold has a limit of its own")
		brief := mustLock(t, client.NewLock(rig.Name(t)))
		again, err := client.NewLock(brief.Name()).Lock(brief.Context(t.Context()))
		require.NoError(t, err)
		rig.Await(t, soon, "the limit of the outer hold", again.Lost())
		require.ErrorIs(t, again.Err(), latchkey.ErrMaxHold)
	})
	t.Run("AtLeast", func(t *testing.T) {
		t.Parallel()
		hold := mustLock(t, client.NewLock(rig.Name(t)), latchkey.AtLeast(2*time.Second))
		rest(options.MaxHold + 300*time.Millisecond)
		assert.NoError(t, hold.Err(), "it lasts for as long as it is to last at least")
		rig.Await(t, soon, "the limit", hold.Lost())
	})
	for _, bad := range []time.Duration{-time.Second, time.Microsecond, longestLease + 1} {
		_, err := latchkey.Connect(context.Background(), "redis://127.0.0.1:1", latchkey.Options{MaxHold: bad})
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, "Options.MaxHold")
	}
}
