package tests

import (
	"bufio"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// stay is a time that an owner spent under one side of a lock, by the clock of the
// machine: from after the acquisition to before the release, so that the server's
// view of it is longer.
type stay struct {
	Lock, Owner uint64
	Write       bool
	From, To    int64
}

// diary collects stays and writes them to a file.
type diary struct {
	mu      sync.Mutex
	file    *bufio.Writer
	longest time.Duration // that anybody waited
}

func (d *diary) write(s stay) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return binary.Write(d.file, binary.LittleEndian, s)
}

func (d *diary) waited(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.longest = max(d.longest, t)
}

func hash64(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return h.Sum64()
}

// wanderer does random things with a read/write lock. Its arguments: name, server,
// file of its diary, for how long.
var wanderer = rig.Child("wanderer", func(_ context.Context, args []string) error {
	lasts, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	file, err := os.Create(args[2])
	if err != nil {
		return err
	}
	d := &diary{file: bufio.NewWriter(file)}
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	err = withClients(args[1], func(client *latchkey.Client, _ rueidis.Client) error {
		var all sync.WaitGroup
		failed := make(chan error, 4)
		for range cap(failed) {
			all.Go(func() {
				w := walk{client: client, name: args[0], diary: d}
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
		return <-failed
	})
	fmt.Println("longest", d.longest.Milliseconds())
	return errors.Join(err, d.file.Flush(), file.Close())
})

// walk is what one goroutine does.
type walk struct {
	client *latchkey.Client
	name   string
	diary  *diary
}

// step is one acquisition from outside, of one of two locks, with what may happen
// under it.
func (w walk) step(ctx context.Context) error {
	name := fmt.Sprint(w.name, rand.IntN(2))
	rw := w.client.NewRWLock(name)
	started := time.Now()
	var lock latchkey.Locker = rw.ReadLock()
	write := rand.IntN(4) == 0
	if write {
		lock = rw.WriteLock()
	}
	hold, err := w.acquire(ctx, lock)
	if hold == nil {
		return err
	}
	w.diary.waited(time.Since(started))
	s := stay{Lock: hash64(name), Owner: hash64(hold.Owner().String()), Write: write, From: time.Now().UnixNano()}
	if err := w.inside(hold, rw, write); err != nil {
		return err
	}
	if write && rand.IntN(3) == 0 {
		if hold, err = w.downgrade(hold, s); err != nil {
			return err
		}
		s.Write = false // nobody else wrote from the beginning of the write to the end of the read
	}
	s.To = time.Now().UnixNano()
	return errors.Join(hold.Err(), w.diary.write(s), hold.Unlock(ctx))
}

// acquire waits, or tries, or gives up soon. Without a hold and an error it was busy.
func (w walk) acquire(ctx context.Context, lock latchkey.Locker) (*latchkey.Hold, error) {
	var hold *latchkey.Hold
	var err error
	switch rand.IntN(4) {
	case 0:
		hold, err = lock.TryLock(ctx)
	case 1:
		hold, err = lock.TryLock(ctx, latchkey.Wait(rand.N(5*time.Millisecond)))
	default:
		hold, err = lock.Lock(ctx)
	}
	if errors.Is(err, latchkey.ErrNotAcquired) {
		err = nil
	}
	return hold, err
}

// inside stays for a moment, and may enter again or ask for what it cannot have.
func (w walk) inside(hold *latchkey.Hold, rw *latchkey.RWLock, write bool) error {
	ctx := hold.Context(context.Background())
	var inner *latchkey.Hold
	var err error
	switch what := rand.IntN(6); {
	case what == 0:
		inner, err = rw.ReadLock().Lock(ctx)
	case what == 1 && write:
		inner, err = rw.WriteLock().Lock(ctx)
	case what == 2 && !write:
		if _, err := rw.WriteLock().Lock(ctx); !errors.Is(err, latchkey.ErrUpgrade) {
			return fmt.Errorf("an upgrade: %w", err)
		}
	}
	rest(rand.N(2 * time.Millisecond))
	if inner != nil {
		err = inner.Unlock(ctx)
	}
	return err
}

// downgrade ends the write and goes on reading.
func (w walk) downgrade(hold *latchkey.Hold, s stay) (*latchkey.Hold, error) {
	s.To = time.Now().UnixNano()
	read, err := hold.Downgrade(context.Background())
	if err == nil {
		rest(rand.N(time.Millisecond))
	}
	return read, errors.Join(err, w.diary.write(s))
}

// Eight processes do random things with two locks. Whoever wrote was alone, and
// readers were together. LATCHKEY_TEST_RW_TIME sets for how long.
func TestHistoryOfAReadWriteLock(t *testing.T) {
	const processes = 8
	lasts := rig.Campaign(t, "LATCHKEY_TEST_RW_TIME", 8*time.Second)
	server, name := rig.Shared(), rig.Name(t)
	var children []*rig.ChildProcess
	var files []string
	for i := range processes {
		files = append(files, filepath.Join(t.TempDir(), strconv.Itoa(i)))
		children = append(children, wanderer.Start(t, name, server.Ticket(), files[i], lasts.String()))
	}
	var longest time.Duration
	for _, child := range children {
		longest = max(longest, milliseconds(t, child.Line(t, lasts+time.Minute, "longest")))
		child.Wait(t, soon)
	}
	history := readDiaries(t, files)
	var writes int
	for _, s := range history {
		if s.Write {
			writes++
		}
	}
	together, err := checkHistory(history)
	require.NoError(t, err)
	t.Logf("%d stays, %d of them to write; up to %d readers together; the longest wait %v", len(history), writes, together, longest)
	assert.Greater(t, together, 1, "readers read together")
	assert.Greater(t, writes, rig.Paced(100))
	rig.Eventually(t, soon, "nothing is left", free(rig.NewAdmin(t, server), name))
}

func readDiaries(t *testing.T, files []string) []stay {
	t.Helper()
	var history []stay
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		for reader := bufio.NewReader(file); ; {
			var s stay
			if err := binary.Read(reader, binary.LittleEndian, &s); err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			history = append(history, s)
		}
		require.NoError(t, file.Close())
	}
	slices.SortFunc(history, func(a, b stay) int { return int(a.From - b.From) })
	return history
}

// checkHistory walks through stays in the order of their beginnings, and returns how
// many owners read at once, at most.
func checkHistory(history []stay) (together int, err error) {
	inside := map[uint64]*present{}
	for _, s := range history {
		p := inside[s.Lock]
		if p == nil {
			p = &present{}
			inside[s.Lock] = p
		}
		for len(*p) > 0 && (*p)[0].To <= s.From {
			heap.Pop(p)
		}
		for _, other := range *p {
			if other.Owner != s.Owner && (other.Write || s.Write) {
				return 0, fmt.Errorf("%+v and %+v were inside together", other, s)
			}
		}
		heap.Push(p, s)
		together = max(together, len(*p))
	}
	return together, nil
}

// present are the stays that have not ended, as a heap by their ends.
type present []stay

func (p present) Len() int           { return len(p) }
func (p present) Less(i, j int) bool { return p[i].To < p[j].To }
func (p present) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push and Pop are for container/heap.
func (p *present) Push(x any) { *p = append(*p, x.(stay)) }

// Pop is for container/heap.
func (p *present) Pop() any {
	last := len(*p) - 1
	s := (*p)[last]
	*p = (*p)[:last]
	return s
}

// The checker itself finds what it should.
func TestHistoryChecker(t *testing.T) {
	alone := []stay{{Owner: 1, Write: true, From: 0, To: 10}, {Owner: 2, From: 10, To: 20}, {Owner: 3, From: 11, To: 15}}
	together, err := checkHistory(alone)
	require.NoError(t, err)
	assert.Equal(t, 2, together)
	_, err = checkHistory(append(alone, stay{Owner: 4, Write: true, From: 19, To: 21}))
	require.Error(t, err)
	_, err = checkHistory([]stay{{Owner: 1, Write: true, From: 0, To: 10}, {Owner: 2, From: 9, To: 12}})
	require.Error(t, err)
	_, err = checkHistory([]stay{{Owner: 1, Write: true, From: 0, To: 10}, {Owner: 1, From: 5, To: 12}})
	require.NoError(t, err, "a writer that reads")
}
