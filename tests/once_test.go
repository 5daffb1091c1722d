package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// returns is work that succeeds.
func returns(result string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(result), nil }
}

func never(t testing.TB) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) {
		t.Error("the work ran again")
		return nil, nil
	}
}

// onceRun is a run that ends when the test says how.
type onceRun struct {
	begun  chan context.Context
	end    chan error
	result chan onceResult
}

type onceResult struct {
	result string
	err    error
}

// runInBackground runs the work in another goroutine, and returns when it runs.
func runInBackground(t testing.TB, o *latchkey.Once, result string, options ...latchkey.LockOption) onceRun {
	t.Helper()
	r := onceRun{make(chan context.Context, 1), make(chan error, 1), make(chan onceResult, 1)}
	go func() {
		got, err := o.Do(context.Background(), func(ctx context.Context) ([]byte, error) {
			r.begun <- ctx
			return []byte(result), <-r.end
		}, options...)
		r.result <- onceResult{string(got), err}
	}()
	return r
}

// onceHeard returns nil when so many clients listen for the end of a run.
func onceHeard(admin *rig.Admin, name string, clients int) func() error {
	return func() error {
		if n := admin.Subscribers("latchkey:{" + name + "}:once"); n < int64(clients) {
			return fmt.Errorf("%d listen", n)
		}
		return nil
	}
}

func (r onceRun) runs(t testing.TB) context.Context {
	t.Helper()
	return rig.Await(t, soon, "a run", r.begun)
}

func (r onceRun) ends(t testing.TB, err error) onceResult {
	t.Helper()
	r.end <- err
	return rig.Await(t, soon, "the end of the run", r.result)
}

func TestOnce_the_work_runs_once(t *testing.T) {
	t.Parallel()
	a, b, name := connect(t, rig.Shared()), connect(t, rig.Shared()), rig.Name(t)
	for _, client := range []*latchkey.Client{a, b} {
		result, done, err := client.NewOnce(name, time.Hour).Result(t.Context())
		require.NoError(t, err)
		require.False(t, done)
		require.Nil(t, result)
	}
	result, err := a.NewOnce(name, time.Hour).Do(t.Context(), returns("a result"))
	require.NoError(t, err)
	require.Equal(t, "a result", string(result))
	for _, client := range []*latchkey.Client{a, b} {
		o := client.NewOnce(name, time.Hour)
		result, err = o.Do(t.Context(), never(t))
		require.NoError(t, err)
		require.Equal(t, "a result", string(result))
		result, done, err := o.Result(t.Context())
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, "a result", string(result))
	}
	require.InDelta(t, time.Hour, rig.NewAdmin(t, rig.Shared()).PTTL(name), float64(time.Minute))
}

// Waiters of the same client and of another one get the result, without running.
func TestOnce_waiters_get_the_result(t *testing.T) {
	t.Parallel()
	a, b, name := connect(t, rig.Shared()), connect(t, rig.Shared()), rig.Name(t)
	run := runInBackground(t, a.NewOnce(name, latchkey.Forever), "of the run")
	run.runs(t)
	var waiters sync.WaitGroup
	for i := range 20 {
		o := []*latchkey.Client{a, b}[i%2].NewOnce(name, time.Hour)
		waiters.Go(func() {
			result, err := o.Do(within(t, soon), never(t))
			assert.NoError(t, err)
			assert.Equal(t, "of the run", string(result))
		})
	}
	rig.Eventually(t, soon, "all wait", func() error {
		if n := a.Waiting()[latchkey.KindOnce] + b.Waiting()[latchkey.KindOnce]; n < 20 {
			return fmt.Errorf("%d wait", n)
		}
		return nil
	})
	require.Equal(t, onceResult{"of the run", nil}, run.ends(t, nil))
	waiters.Wait()
	require.Equal(t, int64(-1), rig.NewAdmin(t, rig.Shared()).Int("PTTL", name), "the process that succeeds says how long")
}

// After an error, a panic and a crash of the runner, a waiter runs.
func TestOnce_another_runs_after_a_failure(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	ways := map[string]func(ctx context.Context) ([]byte, error){
		"an error": func(context.Context) ([]byte, error) { return []byte("no"), broken },
		"a panic":  func(context.Context) ([]byte, error) { panic(broken) },
		"too much": func(context.Context) ([]byte, error) { return make([]byte, 1<<16+1), nil },
	}
	for how, fails := range ways {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a, b, name := connect(t, rig.Shared()), connect(t, rig.Shared()), rig.Name(t)
			begun := make(chan int64, 1)
			failed := make(chan error, 1)
			next := make(chan struct{})
			go func() {
				defer func() {
					if v := recover(); v != nil {
						failed <- v.(error)
					}
				}()
				o := a.NewOnce(name, time.Hour)
				_, err := o.Do(context.Background(), func(ctx context.Context) ([]byte, error) {
					begun <- o.HoldFrom(ctx).Token()
					<-next
					return fails(ctx)
				})
				failed <- err
			}()
			first := rig.Await(t, soon, "a run", begun)
			second := runInBackground(t, b.NewOnce(name, time.Hour), "of b")
			rig.Eventually(t, soon, "b waits", func() error {
				if n := b.Waiting()[latchkey.KindOnce]; n != 1 {
					return fmt.Errorf("%d wait", n)
				}
				return nil
			})
			close(next)
			ctx := second.runs(t)
			require.Greater(t, b.NewOnce(name, time.Hour).HoldFrom(ctx).Token(), first)
			require.Equal(t, onceResult{"of b", nil}, second.ends(t, nil))
			err := rig.Await(t, soon, "the end", failed)
			if how == "too much" {
				require.ErrorIs(t, err, latchkey.ErrInvalid)
				require.ErrorContains(t, err, "65537 bytes, more than 65536")
			} else {
				require.ErrorIs(t, err, broken)
				require.NotErrorIs(t, err, latchkey.ErrLost)
			}
		})
	}
}

func TestOnce_a_crash_frees_it_when_the_lease_ends(t *testing.T) {
	t.Parallel()
	link := rig.NewLink(t, rig.Shared())
	a, b, name := connectVia(t, rig.Shared(), link.Addr(), latchkey.Options{Lease: 2 * time.Second}), connect(t, rig.Shared()), rig.Name(t)
	run := runInBackground(t, a.NewOnce(name, time.Hour), "of a")
	ctx := run.runs(t)
	link.Silence()
	result, err := b.NewOnce(name, time.Hour).Do(within(t, soon), returns("of b"))
	require.NoError(t, err)
	require.Equal(t, "of b", string(result))
	rig.Await(t, soon, "the end of the context", ctx.Done())
	require.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
	link.Heal()
	lost := run.ends(t, nil)
	require.ErrorIs(t, lost.err, latchkey.ErrLost, "what it has done counts for nothing")
	require.Empty(t, lost.result)
	result, err = b.NewOnce(name, time.Hour).Do(t.Context(), never(t))
	require.NoError(t, err)
	require.Equal(t, "of b", string(result))
}

func TestOnce_is_forgotten(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared()), rig.Name(t)
	o := client.NewOnce(name, 50*time.Millisecond)
	require.NoError(t, firstOf(o.Do(t.Context(), returns("one"))))
	rig.Eventually(t, soon, "the end of the TTL", free(rig.NewAdmin(t, rig.Shared()), name))
	o = client.NewOnce(name, latchkey.Forever)
	require.NoError(t, o.Forget(t.Context()), "nothing to forget")
	require.Equal(t, "two", string(doOnce(t, o, returns("two"))))
	require.Equal(t, "two", string(doOnce(t, o, never(t))))
	require.NoError(t, o.Forget(t.Context()))
	run := runInBackground(t, o, "three")
	run.runs(t)
	require.NoError(t, o.Forget(t.Context()), "it does not end a run")
	require.Equal(t, onceResult{"three", nil}, run.ends(t, nil))
	require.Equal(t, "three", string(doOnce(t, o, never(t))))
}

func doOnce(t testing.TB, o *latchkey.Once, fn func(context.Context) ([]byte, error)) []byte {
	t.Helper()
	result, err := o.Do(within(t, soon), fn)
	require.NoError(t, err)
	return result
}

func TestOnce_results_of_any_content(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared()), rig.Name(t)
	for i, result := range []string{"", "\x00\xff\r\n", strings.Repeat("x", 1<<16)} {
		o := client.NewOnce(fmt.Sprint(name, i), time.Hour)
		require.Equal(t, result, string(doOnce(t, o, returns(result))))
		require.Equal(t, result, string(doOnce(t, o, never(t))))
	}
	o := client.NewOnce(name, time.Hour)
	require.Empty(t, doOnce(t, o, func(context.Context) ([]byte, error) { return nil, nil }))
	require.Empty(t, doOnce(t, o, never(t)))
}

// Do inside Do would wait for itself.
func TestOnce_inside_itself(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared()), rig.Name(t)
	o := client.NewOnce(name, time.Hour)
	doOnce(t, o, func(ctx context.Context) ([]byte, error) {
		_, err := client.NewOnce(name, time.Minute).Do(ctx, never(t))
		require.ErrorIs(t, err, latchkey.ErrInvalid)
		require.ErrorContains(t, err, "a Once is not re-entrant")
		return doOnce(t, client.NewOnce(name+"2", time.Minute), func(context.Context) ([]byte, error) {
			return nil, nil
		}), nil
	})
}

func TestOnce_a_bounded_wait(t *testing.T) {
	t.Parallel()
	a, b, name := connect(t, rig.Shared()), connect(t, rig.Shared()), rig.Name(t)
	run := runInBackground(t, a.NewOnce(name, time.Hour), "of the run")
	run.runs(t)
	for _, client := range []*latchkey.Client{a, b} {
		o := client.NewOnce(name, time.Hour)
		rig.Eventually(t, soon, "a refusal", func() error { // the server may be late
			_, err := o.Do(t.Context(), never(t), latchkey.Wait(50*time.Millisecond))
			if !errors.Is(err, latchkey.ErrNotAcquired) {
				return err
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := o.Do(ctx, never(t))
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, onceResult{"of the run", nil}, run.ends(t, nil))
}

func TestOnce_input(t *testing.T) {
	t.Parallel()
	tap := rig.NewTap(t, rig.Shared())
	client := connectVia(t, rig.Shared(), tap.Addr())
	tap.Forget()
	o := client.NewOnce("name", time.Hour)
	for what, err := range map[string]error{
		"no time":    firstOf(client.NewOnce("name", 0).Do(t.Context(), never(t))),
		"too short":  firstOf(client.NewOnce("name", time.Microsecond).Do(t.Context(), never(t))),
		"a bad name": firstOf(client.NewOnce("", time.Hour).Do(t.Context(), never(t))),
		"Forget":     client.NewOnce("name", -1).Forget(t.Context()),
		"no fn":      firstOf(o.Do(t.Context(), nil)),
		"AtLeast":    firstOf(o.Do(t.Context(), never(t), latchkey.AtLeast(time.Second))),
		"As":         firstOf(o.Do(t.Context(), never(t), latchkey.As(client.NewOwner()))),
		"Wait":       firstOf(o.Do(t.Context(), never(t), latchkey.Wait(0))),
	} {
		require.ErrorIs(t, err, latchkey.ErrInvalid, what)
	}
	require.Empty(t, tap.Executed(rig.Mentions("name")))
}

func TestOnce_shows_what_it_is(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared(), latchkey.Options{Label: "web-1"}), rig.Name(t)
	o := client.NewOnce(name, time.Hour)
	run := runInBackground(t, o, "a result", latchkey.Note("release 7"))
	ctx := run.runs(t)
	token := o.HoldFrom(ctx).Token()
	require.InDelta(t, time.Now().UnixMicro(), token, float64(time.Hour.Microseconds()))
	rig.Eventually(t, soon, "the note", func() error {
		i, err := client.Inspect(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, latchkey.KindOnce, i.Kind)
		require.Equal(t, "a Once", i.What)
		require.False(t, i.Locked())
		require.Len(t, i.Holders, 1)
		require.Equal(t, "web-1", i.Holders[0].Label)
		require.Equal(t, token, i.Token)
		if i.Holders[0].Note != "release 7" {
			return errors.New("no note")
		}
		return nil
	})
	require.ErrorIs(t, firstOf(client.ForceUnlock(t.Context(), name)), latchkey.ErrWrongKind)
	run.ends(t, nil)
	i, err := o.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, latchkey.KindOnce, i.Kind)
	require.Empty(t, i.Holders)
	require.Equal(t, token, i.Token)
	require.InDelta(t, time.Hour, i.TTL, float64(time.Minute))
	var listed []latchkey.Object
	for each, err := range client.Objects(t.Context(), name+"*") {
		require.NoError(t, err)
		listed = append(listed, each)
	}
	require.Len(t, listed, 1)
	require.Equal(t, latchkey.KindOnce, listed[0].Kind)
	require.Empty(t, listed[0].Holders)
}

// The end of one run is the result of all others in its client, without a request for each.
func TestOnce_many_goroutines_of_one_client(t *testing.T) {
	t.Parallel()
	tap := rig.NewTap(t, rig.Shared())
	a, b, name := connect(t, rig.Shared()), connectVia(t, rig.Shared(), tap.Addr()), rig.Name(t)
	run := runInBackground(t, a.NewOnce(name, time.Hour), "of the run")
	run.runs(t)
	var waiters sync.WaitGroup
	const many = 500
	for range many {
		waiters.Go(func() { assert.Equal(t, "of the run", string(doOnce(t, b.NewOnce(name, time.Hour), never(t)))) })
	}
	rig.Eventually(t, soon, "all wait", func() error {
		if n := b.Waiting()[latchkey.KindOnce]; n < many {
			return fmt.Errorf("%d wait", n)
		}
		return nil
	})
	rig.Eventually(t, soon, "b listens", onceHeard(rig.NewAdmin(t, rig.Shared()), name, 1))
	tap.Forget()
	run.ends(t, nil)
	waiters.Wait()
	require.Less(t, len(tap.Executed(rig.Both(rig.Named("EVALSHA", "EVAL"), rig.Mentions(name)))), 10)
}

func TestOnce_events(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var events []string
	client, name := connect(t, rig.Shared(), latchkey.Options{Observer: func(e latchkey.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Type != latchkey.EventAttempt {
			events = append(events, string(e.Kind)+" "+e.Type.String())
		}
	}}), rig.Name(t)
	o := client.NewOnce(name, time.Hour)
	doOnce(t, o, returns(""))
	doOnce(t, o, never(t))
	want := []string{"once acquired", "once released", "once opened"}
	rig.Eventually(t, soon, "the events", func() error {
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(events) != fmt.Sprint(want) {
			return fmt.Errorf("%v", events)
		}
		return nil
	})
}

// Many clients wait for one run, and have its result a moment after it ends.
func TestOnce_many_clients(t *testing.T) {
	many := rig.Sized(400)
	name := rig.Name(t)
	run := runInBackground(t, connect(t, rig.Shared()).NewOnce(name, time.Hour), "of the run")
	run.runs(t)
	clients := make([]*latchkey.Client, many)
	for i := range clients {
		clients[i] = connect(t, rig.Shared())
	}
	var waiters sync.WaitGroup
	var last atomic.Int64
	for _, client := range clients {
		waiters.Go(func() {
			result := doOnce(t, client.NewOnce(name, time.Hour), never(t))
			last.Store(time.Now().UnixMicro())
			assert.True(t, bytes.Equal([]byte("of the run"), result))
		})
	}
	rig.Eventually(t, soon, "all listen", onceHeard(rig.NewAdmin(t, rig.Shared()), name, many))
	began := time.Now()
	run.ends(t, nil)
	waiters.Wait()
	took := time.UnixMicro(last.Load()).Sub(began)
	t.Logf("%d clients have the result after %v", many, took)
	rig.Target(t, took < time.Second, "%d clients have the result after %v", many, took)
}
