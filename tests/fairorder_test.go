package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

const queueProcesses = 4

// queuer waits for a fair lock as often as it is ordered to, and records its owner while it holds
// the lock. Its arguments: name, server, its own number, number of orders. An order is an element
// of its list: the number of waiters to start.
var queuer = rig.Child("queuer", func(ctx context.Context, args []string) error {
	orders, _ := strconv.Atoi(args[3])
	return withClients(args[1], func(client *latchkey.Client, raw rueidis.Client) error {
		lock := client.NewFairLock(args[0])
		fmt.Println("ready")
		var all sync.WaitGroup
		for range orders {
			order, err := raw.Do(ctx, raw.B().Blpop().Key(ordersFor(args[0], args[2])).Timeout(60).Build()).AsStrSlice()
			if err != nil {
				return err
			}
			waiters, _ := strconv.Atoi(order[1])
			for range waiters {
				all.Go(func() {
					if err := noteGrant(ctx, raw, lock); err != nil {
						fmt.Fprintln(os.Stderr, "queuer:", err)
					}
				})
			}
		}
		all.Wait()
		return nil
	})
})

func noteGrant(ctx context.Context, raw rueidis.Client, lock *latchkey.Lock) error {
	return lock.Do(ctx, func(ctx context.Context) error {
		inner, err := lock.Lock(ctx) // only to learn the owner
		if err != nil {
			return err
		}
		granted := raw.B().Rpush().Key(grantsOf(lock.Name())).Element(inner.Owner().String()).Build()
		return errors.Join(raw.Do(ctx, granted).Error(), inner.Unlock(ctx))
	})
}

func ordersFor(name, child string) string { return "orders " + child + " of " + name }
func grantsOf(name string) string         { return "grants of " + name }

// queueRun starts the processes and a holder that they queue behind.
func queueRun(t *testing.T, orders int) (admin *rig.Admin, name string, holder *latchkey.Hold, finish func()) {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	admin = rig.NewAdmin(t, server)
	holder = mustLock(t, connect(t, server).NewFairLock(name))
	var children []*rig.ChildProcess
	for i := range queueProcesses {
		children = append(children, queuer.Start(t, name, server.Ticket(), strconv.Itoa(i), strconv.Itoa(orders)))
	}
	for _, child := range children {
		child.Line(t, soon, "ready")
	}
	return admin, name, holder, func() {
		for _, child := range children {
			child.Wait(t, time.Minute)
		}
	}
}

func queueLength(t *testing.T, admin *rig.Admin, name string, want int64) {
	t.Helper()
	rig.Eventually(t, soon, "the waiters are in the queue", func() error {
		if n := admin.Int("LLEN", queueOf(name)); n < want {
			return fmt.Errorf("%d of %d", n, want)
		}
		return nil
	})
}

func grants(t *testing.T, admin *rig.Admin, name string, want int64) []string {
	t.Helper()
	rig.Eventually(t, 3*time.Minute, "all are granted", func() error {
		if n := admin.Int("LLEN", grantsOf(name)); n < want {
			return fmt.Errorf("%d of %d", n, want)
		}
		return nil
	})
	return admin.Strings("LRANGE", grantsOf(name), "0", "-1")
}

// Four processes start a thousand acquisitions one after the other, which are granted in that
// order. LATCHKEY_TEST_FAIR_RUNS sets the number of runs.
func TestThousandAreGrantedInTheirOrder(t *testing.T) {
	rig.Long(t)
	const waiters = 1000
	runs, _ := strconv.Atoi(os.Getenv("LATCHKEY_TEST_FAIR_RUNS"))
	for run := range max(runs, 1) {
		admin, name, holder, finish := queueRun(t, waiters/queueProcesses)
		began := make([]string, 0, waiters)
		for i := range waiters {
			admin.Do("RPUSH", ordersFor(name, strconv.Itoa(i%queueProcesses)), "1")
			queueLength(t, admin, name, int64(i)+1)
		}
		began = append(began, admin.Strings("LRANGE", queueOf(name), "0", "-1")...)
		for i := range waiters {
			// Process i%4 started the i-th acquisition, so its owner has the same client as the
			// first owner of that process.
			require.Equal(t, clientOf(began[i%queueProcesses]), clientOf(began[i]))
		}
		start := time.Now()
		mustUnlock(t, holder)
		assert.Equal(t, began, grants(t, admin, name, waiters))
		t.Logf("run %d: %d granted in order, in %v", run+1, waiters, time.Since(start).Round(time.Millisecond))
		finish()
		assert.Empty(t, admin.Dump("{"+name+"}"), "nothing is left")
	}
}

func clientOf(owner string) string {
	client, _, _ := strings.Cut(owner, ":")
	return client
}

// Many arrive at once and are granted in the order in which the server received them.
func TestManyArriveAtOnce(t *testing.T) {
	t.Parallel()
	waiters := max(rig.Sized(1000), 200)
	admin, name, holder, finish := queueRun(t, 1)
	start := time.Now()
	for i := range queueProcesses {
		admin.Do("RPUSH", ordersFor(name, strconv.Itoa(i)), strconv.Itoa(waiters/queueProcesses))
	}
	queueLength(t, admin, name, int64(waiters))
	took := time.Since(start)
	came := admin.Strings("LRANGE", queueOf(name), "0", "-1")
	arrivals := admin.Strings("HVALS", notesOf(name))
	mustUnlock(t, holder)
	assert.Equal(t, came, grants(t, admin, name, int64(waiters)))
	t.Logf("%d arrivals within %v", waiters, took.Round(time.Millisecond))
	assert.Len(t, arrivals, waiters)
	assert.Len(t, ticketsIn(arrivals), waiters, "no two have the same place")
	finish()
}

// ticketsIn returns the distinct tickets in the notes of a queue.
func ticketsIn(notes []string) map[string]bool {
	tickets := map[string]bool{}
	for _, note := range notes {
		ticket, _, _ := strings.Cut(note, ":")
		tickets[ticket] = true
	}
	return tickets
}
