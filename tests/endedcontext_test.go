package tests

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// cleanUps are the methods that work on a context that has ended.
var cleanUps = map[string]bool{
	"Close": true, "Unlock": true, "Release": true, "ReleaseN": true, "ReleaseIfExists": true, "Resign": true, "Downgrade": true,
	"CountDown": true, "CountDownN": true, "CountDownAs": true, "Cancel": true,
}

// errWhy is the cause of a context.
var errWhy = errors.New("why")

// endedContexts returns contexts that have ended, by the error that each of them has.
func endedContexts(t *testing.T) map[string]context.Context {
	t.Helper()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	t.Cleanup(cancel)
	caused, cancelCause := context.WithCancelCause(t.Context())
	cancelCause(errWhy)
	misleading, cancelMisleading := context.WithCancelCause(t.Context())
	cancelMisleading(errors.Join(latchkey.ErrUnavailable, latchkey.ErrNotAcquired, latchkey.ErrUnknownOutcome))
	return map[string]context.Context{"canceled": canceled, "late": late, "with a cause": caused, "with a misleading cause": misleading}
}

// onlyTheContexts checks that an error is that of an ended context, and says nothing of the server.
func onlyTheContexts(ctx context.Context, t *testing.T, err error, what string) {
	t.Helper()
	require.Error(t, err, what)
	assert.ErrorIs(t, err, ctx.Err(), what)
	if cause := context.Cause(ctx); errors.Is(cause, errWhy) {
		assert.ErrorIs(t, err, cause, what)
	}
	for _, other := range []error{
		latchkey.ErrNotAcquired, latchkey.ErrUnavailable, latchkey.ErrUnknownOutcome, latchkey.ErrClosed, latchkey.ErrInvalid,
		latchkey.ErrNotHeld, latchkey.ErrLost, latchkey.ErrBroken, latchkey.ErrNotSet, latchkey.ErrGone,
	} {
		assert.NotErrorIs(t, err, other, what)
	}
	assert.NotContains(t, strings.SplitN(err.Error(), ctx.Err().Error(), 2)[0], "unavailable", what)
}

// A call whose context has ended before it sends nothing, and its error matches only that of the
// context: nothing is known of the lock or of the server. That is true of each method of each
// object that takes a context and is no clean-up. Clean-ups work.
func TestEndedContext(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	tap := rig.NewTap(t, server)
	client, ctx := connectVia(t, server, tap.Addr(), patient), t.Context()
	objects := endedContextObjects(t, client, name)
	ended := endedContexts(t)
	tap.Forget()
	for _, object := range objects {
		for _, m := range methodsWithContext(object) {
			for how, ctx := range ended {
				if !cleanUps[m.Name] {
					onlyTheContexts(ctx, t, callWith(ctx, t, object, m), reflect.TypeOf(object).String()+"."+m.Name+", "+how)
				}
			}
		}
	}
	for how, ctx := range ended {
		calls := 0
		for _, err := range client.Objects(ctx, "*") {
			onlyTheContexts(ctx, t, err, "Objects, "+how)
			calls++
		}
		assert.Equal(t, 1, calls, "Objects, "+how)
		for range client.NewElection(name + "e").Observe(ctx) { //nolint:errcheck // it yields
			t.Error("Observe yields")
		}
	}
	assert.Empty(t, tap.Commands())

	accepted := tap.Accepted()
	for how, ctx := range ended {
		_, err := latchkey.Connect(ctx, server.URLVia(tap.Addr()), latchkey.Options{})
		onlyTheContexts(ctx, t, err, "Connect, "+how)
		_, err = latchkey.Open(ctx, rueidis.ClientOption{InitAddress: []string{tap.Addr()}}, latchkey.Options{})
		onlyTheContexts(ctx, t, err, "Open, "+how)
	}
	assert.Equal(t, accepted, tap.Accepted())

	for _, object := range objects {
		for _, m := range methodsWithContext(object) {
			if _, closes := object.(*latchkey.Client); cleanUps[m.Name] && !closes {
				require.NoError(t, callWith(ended["canceled"], t, object, m), "%T.%s", object, m.Name)
			}
		}
	}
	assert.NoError(t, client.Close(ended["canceled"]))
	_, err := connect(t, server, patient).NewLock(name + "0").TryLock(ctx)
	assert.NoError(t, err, "it was released")
}

// endedContextObjects returns one object of each type that has methods with a context. Its holds
// are held.
func endedContextObjects(t *testing.T, client *latchkey.Client, name string) []any {
	t.Helper()
	rw, lock, fair := client.NewRWLock(name+"rw"), client.NewLock(name), client.NewFairLock(name+"fair")
	semaphore, latch := client.NewSemaphore(name+"s"), client.NewCountDownLatch(name+"l")
	permits, fairPermits := client.NewPermitSemaphore(name+"p"), client.NewFairSemaphore(name+"fp")
	election := client.NewElection(name + "e")
	ctx, setter := within(t, soon), connect(t, rig.Shared(), persistent) // the client may have too short a budget for a busy machine
	require.NoError(t, setter.NewSemaphore(semaphore.Name()).SetPermits(ctx, 1))
	require.NoError(t, setter.NewPermitSemaphore(permits.Name()).SetPermits(ctx, 2))
	require.NoError(t, setter.NewFairSemaphore(fairPermits.Name()).SetPermits(ctx, 2))
	_, err := setter.NewCountDownLatch(latch.Name()).TrySetCount(ctx, 10)
	require.NoError(t, err)
	leadership, err := election.Campaign(ctx, "value")
	require.NoError(t, err)
	permit, err := permits.Acquire(ctx)
	require.NoError(t, err)
	both := latchkey.NewMultiLock(client.NewLock(name+"1"), client.NewLock(name+"2"))
	red := latchkey.NewRedLock(latchkey.RedLockOptions{}, client.NewLock(name+"3"))
	full := client.NewRateLimiter(name+"reserved", hourly)
	mustAllow(t, full, 5)
	return []any{
		client, lock, client.NewMutex(name + "mutex"), client.NewFencedLock(name + "fenced"), fair, rw.Reader(), rw.Writer(),
		client.NewSpinLock(name+"spin", latchkey.Backoff{}), both, red, semaphore, permits, fairPermits, latch, election,
		client.NewBarrier(name+"barrier", 2), client.NewOnce(name+"once", time.Hour),
		client.NewRateLimiter(name+"limiter", hourly), mustReserve(t, full, 1),
		mustLock(t, client.NewLock(name+"0")), mustLock(t, latchkey.NewMultiLock(client.NewLock(name+"4"), client.NewLock(name+"5"))),
		mustLock(t, latchkey.NewRedLock(latchkey.RedLockOptions{}, client.NewLock(name+"6"))), mustLock(t, client.NewFairLock(name+"7")),
		mustLock(t, client.NewRWLock(name+"8").Writer()), permit, leadership,
	}
}

// methodsWithContext returns the exported methods that take a context and return an error.
func methodsWithContext(object any) (all []reflect.Method) {
	takes, returns := reflect.TypeFor[context.Context](), reflect.TypeFor[error]()
	of := reflect.TypeOf(object)
	for i := range of.NumMethod() {
		m := of.Method(i)
		if f := m.Type; f.NumIn() > 1 && f.In(1) == takes && f.NumOut() > 0 && f.Out(f.NumOut()-1) == returns {
			all = append(all, m)
		}
	}
	return all
}

// callWith calls a method, with arguments that it accepts, and returns its error.
func callWith(ctx context.Context, t *testing.T, object any, m reflect.Method) error {
	t.Helper()
	in := []reflect.Value{reflect.ValueOf(object), reflect.ValueOf(ctx)}
	for i := 2; i < m.Type.NumIn(); i++ {
		switch of := m.Type.In(i); {
		case of == reflect.TypeFor[time.Duration]():
			in = append(in, reflect.ValueOf(time.Minute))
		case of == reflect.TypeFor[latchkey.Rate]():
			in = append(in, reflect.ValueOf(hourly))
		case of.Kind() == reflect.Int:
			in = append(in, reflect.ValueOf(1))
		case of.Kind() == reflect.Func:
			in = append(in, reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value {
				t.Errorf("%s calls its function", m.Name)
				var out []reflect.Value
				for i := range of.NumOut() {
					out = append(out, reflect.Zero(of.Out(i)))
				}
				return out
			}))
		case of.Kind() == reflect.String, of == reflect.TypeFor[[]string]():
			in = append(in, reflect.ValueOf(textFor(object)))
		}
	}
	out := m.Func.Call(in)
	err, _ := out[len(out)-1].Interface().(error)
	switch {
	case cleanUps[m.Name] && errors.Is(err, latchkey.ErrNotHeld): // there is no such permit: the server has said so
		return nil
	case m.Name == "Downgrade" && errors.Is(err, latchkey.ErrInvalid): // the hold of another lock
		return nil
	}
	return err
}

// textFor is a text that the methods of an object accept: a name, a value, or the id of a permit.
func textFor(object any) string {
	switch object.(type) {
	case *latchkey.PermitSemaphore:
		return strings.Repeat("0", 32)
	}
	return "text"
}
