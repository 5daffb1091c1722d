package tests

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// contention is a number of workers that go through a section under one lock.
type contention struct {
	lock    anyLock
	section *rig.Section
	workers int
	passes  int // of each worker
	tally   *rig.Tally
}

func (c *contention) run(ctx context.Context) error {
	c.tally = rig.NewTally(c.workers)
	failed := make(chan error, c.workers)
	var all sync.WaitGroup
	for worker := range c.workers {
		all.Go(func() {
			if err := c.work(ctx, worker); err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

func (c *contention) work(ctx context.Context, worker int) error {
	for range c.passes {
		start := time.Now()
		hold, err := c.lock.Lock(ctx)
		if err != nil {
			return err
		}
		c.tally.Add(worker, time.Since(start))
		if err := c.section.Pass(ctx); err != nil {
			return err
		}
		if err := hold.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// A hundred goroutines share one lock value: two are never inside at once, nobody starves, and
// nothing is left behind.
func TestGoroutinesExclude(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		passes := 5
		if k.name == lockKind.name {
			passes = 20 // 2000 in all
		}
		passes = rig.Sized(passes)
		server, name := rig.Shared(), rig.Name(t)
		c := contention{
			lock:    k.open(connect(t, server), name),
			section: rig.NewSection(server.Raw(t), name),
			workers: 100, passes: passes,
		}
		start := time.Now()
		require.NoError(t, c.run(within(t, 10*time.Minute)))
		took := time.Since(start)
		t.Logf("%v; %v in all", c.tally, took.Round(time.Millisecond))

		c.section.Verify(t, int64(100*passes))
		nobodyStarved(t, c.tally.Longest(), took)
		assert.NoError(t, free(rig.NewAdmin(t, server), name)())
	})
}

// nobodyStarved checks the longest wait of a run: on a machine that is slow, it is a part of the
// time of all.
func nobodyStarved(t *testing.T, longest, all time.Duration) {
	t.Helper()
	assert.Less(t, longest, max(time.Minute, all/2), "somebody starved")
}

// exclusionProcess is a process of several goroutines that contend for one lock of each kind, one
// kind after the other. It begins with each kind when it is told to. Its arguments: name, server,
// goroutines, passes of each, which are more for one kind.
var exclusionProcess = rig.Child("exclusion", func(ctx context.Context, args []string) error {
	goroutines, _ := strconv.Atoi(args[2])
	passes, _ := strconv.Atoi(args[3])
	more, _ := strconv.Atoi(args[4])
	return withClients(args[1], func(client *latchkey.Client, raw rueidis.Client) error {
		fmt.Println("ready")
		for _, k := range kinds {
			name := args[0] + k.name
			if err := raw.Do(ctx, raw.B().Blpop().Key(startsOf(name)).Timeout(0).Build()).Error(); err != nil {
				return err
			}
			c := contention{lock: k.open(client, name), section: rig.NewSection(raw, name), workers: goroutines, passes: passes}
			if k.name == lockKind.name {
				c.passes = more
			}
			if err := c.run(ctx); err != nil {
				return err
			}
			fmt.Println("longest", k.name, c.tally.Longest().Milliseconds())
		}
		return nil
	})
})

// startsOf is a list with an element for each process that is to begin.
func startsOf(name string) string { return "starts " + name }

// withClients gives a child process a client of the library and a client for the section.
func withClients(ticket string, use func(*latchkey.Client, rueidis.Client) error) error {
	server, err := rig.Attach(ticket)
	if err != nil {
		return err
	}
	raw, err := server.Client()
	if err != nil {
		return err
	}
	defer raw.Close()
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	if err != nil {
		return err
	}
	return errors.Join(use(client, raw), closeAll(context.Background()))
}

// The same with eight processes of eight goroutines each, and more than 10 000 acquisitions of one
// kind.
func TestProcessesExclude(t *testing.T) {
	t.Parallel()
	const goroutines = 8
	processes, passes, more := 8, rig.Paced(16), rig.Paced(157)
	if testing.Short() {
		processes, passes, more = 2, 3, 20
	}
	server, prefix := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	var children []*rig.ChildProcess
	for range processes {
		children = append(children, exclusionProcess.Start(t, prefix, server.Ticket(),
			strconv.Itoa(goroutines), strconv.Itoa(passes), strconv.Itoa(more)))
	}
	for _, child := range children {
		child.Line(t, soon, "ready")
	}
	for _, k := range kinds {
		name, total := prefix+k.name, processes*goroutines*passes
		if k.name == lockKind.name {
			total = processes * goroutines * more
		}
		start := time.Now()
		for range children {
			admin.Do("RPUSH", startsOf(name), "begin")
		}
		var longest time.Duration
		for _, child := range children {
			longest = max(longest, milliseconds(t, child.Line(t, 10*time.Minute, "longest "+k.name)))
		}
		took := time.Since(start)
		t.Logf("%s: %d acquisitions in %v, the longest wait %v", k.name, total, took.Round(time.Millisecond), longest)
		rig.NewSection(server.Raw(t), name).Verify(t, int64(total))
		nobodyStarved(t, longest, took)
		assert.NoError(t, free(admin, name)())
	}
	for _, child := range children {
		child.Wait(t, soon)
	}
}

func milliseconds(t *testing.T, text string) time.Duration {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return time.Duration(n) * time.Millisecond
}

// Tokens grow from holder to holder across clients, and do not change during a hold.
func TestFencingTokensGrow(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	var last, acquired atomic.Int64
	all := rig.Goroutines(t)
	for range 5 {
		lock := connect(t, server).NewFencedLock(name)
		for range 4 {
			all.Go(func() {
				for range 25 {
					assert.NoError(t, lock.Do(t.Context(), func(ctx context.Context) error {
						acquired.Add(1)
						return passToken(ctx, lock, &last)
					}))
				}
			})
		}
	}
	all.Wait()
	assert.Equal(t, int64(500), acquired.Load())
	assert.Equal(t, int64(500), last.Load(), "each acquisition takes one")
	inspection, err := connect(t, server).Inspect(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, last.Load(), inspection.Token)
}

// Scripts calculate exactly only up to 2⁵³, but tokens grow beyond that.
func TestFencingTokensGrowBeyondExactNumbers(t *testing.T) {
	t.Parallel()
	const largest = 1 << 53
	server, name := rig.Shared(), rig.Name(t)
	rig.NewAdmin(t, server).Do("SET", tokenKey(name), strconv.Itoa(largest-3))
	lock, last := connect(t, server).NewFencedLock(name), atomic.Int64{}
	for token := range int64(6) {
		hold := mustLock(t, lock)
		assert.Equal(t, largest-2+token, hold.Token())
		last.Store(hold.Token())
		mustUnlock(t, hold)
	}
}

// passToken re-enters the lock, compares its token with the last one, and stores it as the last
// one.
func passToken(ctx context.Context, lock anyLock, last *atomic.Int64) error {
	inner, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	if before := last.Swap(inner.Token()); before >= inner.Token() {
		err = fmt.Errorf("token %d after %d", inner.Token(), before)
	}
	return errors.Join(err, inner.Unlock(ctx))
}
