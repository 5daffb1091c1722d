package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/history"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// shares is the capacity of a read/write lock in a history: a reader takes one share, a writer all
// of them.
const shares = 1000

// stayLog collects stays and writes them to a file.
type stayLog struct {
	mu      sync.Mutex
	file    *bufio.Writer
	longest time.Duration // the longest wait
}

func (d *stayLog) write(s history.Stay) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.file.Write(s.Append(nil))
	return err
}

func (d *stayLog) waited(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.longest = max(d.longest, t)
}

// rwHistoryProcess does random things with a read/write lock. Its arguments: name, server, file for
// its stays, duration.
var rwHistoryProcess = rig.Child("history of a read-write lock", func(_ context.Context, args []string) error {
	lasts, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	file, err := os.Create(args[2])
	if err != nil {
		return err
	}
	d := &stayLog{file: bufio.NewWriter(file)}
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	client, closeAll, err := dialTicket(args[1], "", persistent)
	if err == nil {
		var all sync.WaitGroup
		failed := make(chan error, 4)
		for range cap(failed) {
			all.Go(func() {
				w := rwHistoryWorker{client: client, name: args[0], log: d}
				for ctx.Err() == nil {
					if err := w.step(context.Background()); err != nil {
						failed <- err
						return
					}
				}
			})
		}
		all.Wait()
		close(failed)
		err = errors.Join(<-failed, closeAll(context.Background()))
	}
	fmt.Println("longest", d.longest.Milliseconds())
	return errors.Join(err, d.file.Flush(), file.Close())
})

// rwHistoryWorker is the work of one goroutine.
type rwHistoryWorker struct {
	client *latchkey.Client
	name   string
	log    *stayLog
}

// step acquires one of two locks, may re-enter or downgrade it, and releases it.
func (w rwHistoryWorker) step(ctx context.Context) error {
	name := fmt.Sprint(w.name, rand.IntN(2))
	rw := w.client.NewRWLock(name)
	started := time.Now()
	var lock anyLock = rw.Reader()
	write := rand.IntN(4) == 0
	if write {
		lock = rw.Writer()
	}
	hold, err := w.acquire(ctx, lock)
	if hold == nil {
		return err
	}
	w.log.waited(time.Since(started))
	s := history.Stay{Key: name, From: time.Now().UnixNano(), Permits: 1}
	if err := w.inside(ctx, hold, rw, write); err != nil {
		return err
	}
	switch {
	case write && rand.IntN(3) == 0:
		if hold, err = w.downgrade(ctx, hold, s); err != nil {
			return err
		}
	case write:
		s.Permits = shares
	}
	s.To = time.Now().UnixNano()
	return errors.Join(hold.Err(), w.log.write(s), hold.Unlock(ctx))
}

// acquire waits, tries, or gives up soon. It returns neither a hold nor an error if the lock was
// busy.
func (w rwHistoryWorker) acquire(ctx context.Context, lock anyLock) (*latchkey.Hold, error) {
	var hold *latchkey.Hold
	var err error
	switch rand.IntN(4) {
	case 0:
		hold, err = lock.TryLock(ctx)
	case 1:
		hold, err = lock.Lock(ctx, latchkey.Wait(time.Microsecond+rand.N(5*time.Millisecond)))
	default:
		hold, err = lock.Lock(ctx)
	}
	if errors.Is(err, latchkey.ErrNotAcquired) || errors.Is(err, latchkey.ErrUnavailable) {
		err = nil // a short wait may be over before the server has replied
	}
	return hold, err
}

// inside stays for a short time, and may re-enter or request an upgrade, which must be refused.
func (w rwHistoryWorker) inside(ctx context.Context, hold *latchkey.Hold, rw *latchkey.RWLock, write bool) error {
	ctx = hold.Context(ctx)
	var inner *latchkey.Hold
	var err error
	switch what := rand.IntN(6); {
	case what == 0:
		inner, err = rw.Reader().Lock(ctx)
	case what == 1 && write:
		inner, err = rw.Writer().Lock(ctx)
	case what == 2 && !write:
		if _, err := rw.Writer().Lock(ctx); !errors.Is(err, latchkey.ErrUpgrade) {
			return fmt.Errorf("an upgrade: %w", err)
		}
	}
	rest(rand.N(2 * time.Millisecond))
	if inner != nil {
		err = inner.Unlock(ctx)
	}
	return err
}

// downgrade ends the write and goes on reading: it gives all shares but one back.
func (w rwHistoryWorker) downgrade(ctx context.Context, hold *latchkey.Hold, s history.Stay) (*latchkey.Hold, error) {
	s.Permits, s.To = shares-1, time.Now().UnixNano()
	read, err := hold.Downgrade(ctx)
	if err == nil {
		rest(rand.N(time.Millisecond))
	}
	return read, errors.Join(err, w.log.write(s))
}

// Four processes do random things with two locks. A writer was always alone, and readers
// overlapped. LATCHKEY_TEST_RW_TIME sets the duration.
func TestHistoryOfAReadWriteLock(t *testing.T) {
	rig.Repeated(t, "LATCHKEY_TEST_RW_TIME", 4*time.Second, historyOfAReadWriteLock)
}

func historyOfAReadWriteLock(t *testing.T, lasts time.Duration) {
	t.Helper()
	const processes = 4
	server, name := rig.Shared(), rig.Name(t)
	var children []*rig.ChildProcess
	var files []string
	for i := range processes {
		files = append(files, filepath.Join(t.TempDir(), strconv.Itoa(i)))
		children = append(children, rwHistoryProcess.Start(t, name, server.Ticket(), files[i], lasts.String()))
	}
	var longest time.Duration
	for _, child := range children {
		longest = max(longest, milliseconds(t, child.Line(t, lasts+time.Minute, "longest")))
		child.Wait(t, soon)
	}
	stays, err := history.Read(files...)
	require.NoError(t, err)
	history.CheckStays(t, shares, stays)
	reads := slices.DeleteFunc(slices.Clone(stays), func(s history.Stay) bool { return s.Permits > 1 })
	writes := len(stays) - len(reads)
	t.Logf("%d stays, %d of them to write; the longest wait %v", len(stays), writes, longest)
	assert.False(t, history.Fit(1, reads), "readers read together")
	assert.Greater(t, writes, 10)
	rig.Eventually(t, soon, "nothing is left", free(rig.NewAdmin(t, server), name))
}
