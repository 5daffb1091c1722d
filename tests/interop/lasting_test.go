package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// shortLease is the lease, and the watchdog timeout of Redisson, of holds that are renewed until
// they or their processes end. It is long enough for renewals on a busy machine.
const shortLease = 5 * time.Second

// briefLease is the lease of what is to expire.
const briefLease = 2 * time.Second

// lasting is something that is held for as long as its process lives, and what waits for it: kinds
// of locks, "multi" or "permit".
type lasting struct {
	Holds, Waits string
	Name         string
}

// allLasting returns one of each kind, each with its own name.
func allLasting(t *testing.T) (all []lasting) {
	t.Helper()
	for _, kind := range append(locks, "multi", "permit") {
		all = append(all, lasting{kind, kind, rig.Name(t)})
	}
	return append(all, lasting{"read", "write", rig.Name(t)}, lasting{"write", "read", rig.Name(t)})
}

// prepare creates the only permit.
func (l lasting) prepare(t *testing.T, client *latchkey.Client) {
	t.Helper()
	if l.Holds == "permit" {
		require.NoError(t, client.NewPermitSemaphore(l.Name).SetPermits(within(t, soon), 1))
	}
}

// goAcquire acquires with this library, and waits if wait is positive. Only the end of the client
// releases what it gets.
func goAcquire(ctx context.Context, client *latchkey.Client, kind, name string, wait time.Duration) (err error) {
	var lock latchkey.Locker
	switch kind {
	case "multi":
		lock = latchkey.NewMultiLock(client.NewLock(name+":1"), client.NewLock(name+":2"))
	case "permit":
		if wait > 0 {
			_, err = client.NewPermitSemaphore(name).Acquire(ctx, latchkey.Wait(wait))
		} else {
			_, err = client.NewPermitSemaphore(name).TryAcquire(ctx)
		}
		return err
	default:
		lock = lockOf(client, kind, name)
	}
	if wait > 0 {
		_, err = lock.Lock(ctx, latchkey.Wait(wait))
	} else {
		_, err = lock.TryLock(ctx)
	}
	return err
}

// javaTry starts an attempt of Redisson that waits at most that long.
func javaTry(th thread, kind, name string, wait time.Duration) <-chan answer {
	f := merge(lasting{Holds: kind, Name: name}.inJava(), fields{"wait": wait.Milliseconds()})
	if kind == "permit" {
		f["lease"] = shortLease.Milliseconds() // Redisson renews no permit
		return th.start("permit.try", f)
	}
	return th.start("lock.try", f)
}

// inJava returns the fields that describe it to the driver.
func (l lasting) inJava() fields {
	f := fields{"name": l.Name, "kind": l.Holds}
	if l.Holds == "multi" {
		f["names"] = []string{l.Name + ":1", l.Name + ":2"}
	}
	return f
}

// javaGot reports whether an attempt has succeeded.
func javaGot(t *testing.T, a answer) bool {
	t.Helper()
	require.NoError(t, a.err())
	switch string(a.Value) {
	case "true":
		return true
	case "false", "[]":
		return false
	}
	return assert.NotEmpty(t, value[[]string](t, a))
}

// holderProcess is a process of this library that holds everything in its arguments until it is
// killed. Its arguments are the URL and what to hold.
var holderProcess = rig.Child("holder", func(ctx context.Context, args []string) error {
	var all []lasting
	if err := json.Unmarshal([]byte(args[1]), &all); err != nil {
		return err
	}
	client, err := latchkey.Connect(ctx, args[0], latchkey.Options{
		Lease: shortLease, Logger: slog.New(slog.DiscardHandler),
	})
	for _, l := range all {
		if err == nil {
			err = goAcquire(ctx, client, l.Holds, l.Name, 0)
		}
	}
	if err != nil {
		return err
	}
	fmt.Println("holding")
	select {}
})

// waitFor acquires with Wait and reports when it succeeded.
func waitFor(t *testing.T, client *latchkey.Client, l lasting, wait time.Duration) <-chan result[bool] {
	t.Helper()
	return inBackground(func() (bool, error) {
		err := goAcquire(within(t, wait+soon), client, l.Waits, l.Name, wait)
		if errors.Is(err, latchkey.ErrNotAcquired) {
			return false, nil
		}
		return err == nil, err
	})
}
