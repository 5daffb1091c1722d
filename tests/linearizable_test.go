package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/history"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Every reply counts here, even a refusal: there must be an order of all calls in which a correct
// object would give exactly these replies. The calls do not wait, so that they are short and the
// order is found quickly.

// record collects the calls of a history.
type record[C any] struct {
	mu    sync.Mutex
	calls []C
}

func (r *record[C]) add(call C) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

func now() int64 { return time.Now().UnixNano() }

// everybody calls run for several callers, which share two clients.
func everybody(t *testing.T, run func(client *latchkey.Client, caller int) error) {
	t.Helper()
	clients := []*latchkey.Client{connect(t, rig.Shared()), connect(t, rig.Shared())}
	const callers = 6
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { errs[i] = run(clients[i%len(clients)], i) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestLocksAreLinearizable(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		name := rig.Name(t)
		var calls record[history.PermitCall]
		everybody(t, func(client *latchkey.Client, caller int) error {
			for range rig.Sized(150) {
				if err := tryOnce(t.Context(), k.open(client, fmt.Sprint(name, rand.IntN(2))), 1, caller, &calls); err != nil {
					return err
				}
			}
			return nil
		})
		history.CheckPermits(t, 1, calls.calls)
	})
}

// tryOnce tries to acquire n shares of a lock, releases them, and records both calls.
func tryOnce(ctx context.Context, lock anyLock, n, caller int, calls *record[history.PermitCall]) error {
	call := history.PermitCall{Key: lock.Name(), Caller: caller, What: history.Take, N: n, Begin: now()}
	hold, err := lock.TryLock(ctx)
	call.End = now()
	if err != nil {
		if !errors.Is(err, latchkey.ErrNotAcquired) {
			return err
		}
		call.What = history.Refused
		calls.add(call)
		return nil
	}
	call.Token = hold.Token()
	calls.add(call)
	call.What, call.Token, call.Begin = history.Give, 0, now()
	err = hold.Unlock(ctx)
	call.End = now()
	calls.add(call)
	return err
}

func TestReadWriteLocksAreLinearizable(t *testing.T) {
	t.Parallel()
	name := rig.Name(t)
	var calls record[history.PermitCall]
	everybody(t, func(client *latchkey.Client, caller int) error {
		for range rig.Sized(150) {
			rw := client.NewRWLock(name)
			var side anyLock = rw.Reader()
			n := 1
			if rand.IntN(2) == 0 {
				side, n = rw.Writer(), shares
			}
			if err := tryOnce(t.Context(), side, n, caller, &calls); err != nil {
				return err
			}
		}
		return nil
	})
	history.CheckPermits(t, shares, calls.calls)
}

func TestSemaphoresAreLinearizable(t *testing.T) {
	t.Parallel()
	ctx, name := t.Context(), rig.Name(t)
	_, err := connect(t, rig.Shared()).NewSemaphore(name).TrySetPermits(ctx, capacity)
	require.NoError(t, err)
	var calls record[history.PermitCall]
	everybody(t, func(client *latchkey.Client, caller int) error {
		s, held := client.NewSemaphore(name), 0
		for range rig.Sized(150) {
			call := history.PermitCall{Caller: caller, N: 1 + rand.IntN(4), Begin: now()}
			var err error
			switch rand.IntN(6) {
			case 0:
				call.What = history.Free
				call.N, err = freeIn(ctx, s)
			case 1:
				call.What = history.Drain
				call.N, err = s.Drain(ctx)
				held += call.N
			case 2, 3:
				call.What, err = history.Take, s.TryAcquireN(ctx, call.N)
				if errors.Is(err, latchkey.ErrNotAcquired) {
					call.What, err = history.Refused, nil
				} else {
					held += call.N
				}
			default:
				if call.N = min(call.N, held); call.N == 0 {
					continue
				}
				call.What, err = history.Give, s.ReleaseN(ctx, call.N)
				held -= call.N
			}
			if err != nil {
				return err
			}
			call.End = now()
			calls.add(call)
		}
		return nil
	})
	history.CheckPermits(t, capacity, calls.calls)
}

func TestPermitSemaphoresAreLinearizable(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	name := newPermits(t, connect(t, rig.Shared()), capacity).Name()
	var calls record[history.PermitCall]
	everybody(t, func(client *latchkey.Client, caller int) error {
		s := client.NewPermitSemaphore(name)
		for range rig.Sized(100) {
			call := history.PermitCall{Caller: caller, What: history.Take, N: 1 + rand.IntN(4), Begin: now()}
			permits, err := s.TryAcquireN(ctx, call.N)
			call.End = now()
			if errors.Is(err, latchkey.ErrNotAcquired) {
				call.What, err = history.Refused, nil
			}
			calls.add(call)
			for _, p := range permits {
				give := history.PermitCall{Caller: caller, What: history.Give, N: 1, Begin: now()}
				err = errors.Join(err, p.Release(ctx))
				give.End = now()
				calls.add(give)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	history.CheckPermits(t, capacity, calls.calls)
}

func TestLatchesAreLinearizable(t *testing.T) {
	t.Parallel()
	ctx, name := t.Context(), rig.Name(t)
	latch := connect(t, rig.Shared()).NewCountDownLatch(name)
	_, err := latch.TrySetCount(ctx, 1)
	require.NoError(t, err)
	_, err = latch.CountDown(ctx)
	require.NoError(t, err)
	var calls record[history.LatchCall]
	everybody(t, func(client *latchkey.Client, caller int) error {
		latch := client.NewCountDownLatch(name)
		for range rig.Sized(100) {
			call, err := latchCall(ctx, latch)
			if err != nil {
				return err
			}
			if call.What != "" {
				call.Caller = caller
				calls.add(call)
			}
		}
		return nil
	})
	assert.NotEmpty(t, calls.calls)
	history.CheckLatch(t, calls.calls)
}

// latchCall makes one call. An Await that finds the latch closed does not count.
func latchCall(ctx context.Context, latch *latchkey.CountDownLatch) (call history.LatchCall, err error) {
	call.Begin = now()
	switch rand.IntN(5) {
	case 0:
		call.What, call.N = history.LatchSetBefore, 1+rand.IntN(3)
		var set bool
		if set, err = latch.TrySetCount(ctx, call.N); set {
			call.What = history.LatchSet
		}
	case 1:
		call.What = history.LatchCount
		call.N, err = latch.Count(ctx)
	case 2:
		err = latch.Await(ctx, latchkey.Wait(time.Millisecond))
		if errors.Is(err, latchkey.ErrNotAcquired) || errors.Is(err, latchkey.ErrUnavailable) {
			return call, nil // it is closed, or the reply took longer
		}
		call.What = history.LatchAwait
	default:
		call.What = history.LatchCountDown
		call.N, err = latch.CountDown(ctx)
	}
	call.End = now()
	return call, err
}
