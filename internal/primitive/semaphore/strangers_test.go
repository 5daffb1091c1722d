package semaphore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// soon is long enough on a busy machine, and less than the time after which a waiter polls here.
const soon, polls = 10 * time.Second, time.Minute

// pool is a fair semaphore at which a stranger listens.
type pool struct {
	semaphore.Pool

	t *testing.T
}

func newPool(t *testing.T, permits int) pool {
	t.Helper()
	c := testredis.NewEngine(t, func(s *testredis.Settings) { s.PollCeiling, s.StaleWaiterTimeout = polls, 3*polls })
	p := pool{semaphore.NewFairPool(c, testredis.UniqueName(t, c)), t}
	require.NoError(t, p.Set(t.Context(), permits))
	testredis.Hear(t, c, p.Names.Channel)
	return p
}

// acquire waits for permits in the background.
func (p pool) acquire(n int) <-chan []*hold.Handle {
	got := make(chan []*hold.Handle, 1)
	go func() {
		holds, err := p.Acquire(p.t.Context(), "acquire", true, n, nil)
		assert.NoError(p.t, err)
		got <- holds
	}()
	return got
}

func (p pool) release(holds []*hold.Handle) {
	p.t.Helper()
	for _, h := range holds {
		require.NoError(p.t, h.Unlock(p.t.Context()))
	}
}

// queueDead puts a waiter of a client that is gone into the queue.
func (p pool) queueDead() {
	p.t.Helper()
	const dead = "99999999-9999-4999-8999-999999999999"
	id := identity.NewPermitIDs(dead, p.Client.Number(), 1)[0]
	args := p.Client.Inbox.ChannelArgs(
		[]string{dead + ":" + id, "30000", "600000", "", "5000", "", "PUBLISH", p.Names.Channel}, p.Names.Key)
	require.IsType(p.t, []any{}, testredis.RunScript(p.Client, script.PermitAcquire, p.Names.FairPermitKeys(), args...))
}

// await waits until so many calls of this client wait, and at least so many entries are in the
// queue whose clients listen.
func (p pool) await(calls, listen int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		entries, err := testredis.Do(p.Client, "HKEYS", p.Names.FairPermitKeys()[4]).AsStrSlice()
		entries = slices.DeleteFunc(entries, func(e string) bool { return e == "" })
		return err == nil && len(entries) >= listen && p.Client.Waiting.Counts.Now()[keyspace.KindFairPermit] == calls
	}, soon, time.Millisecond)
}

// The first in the queue is dead. The next one has the permit a moment after the release, although
// it may be the turn of the stranger, who does not want it.
func TestStrangers_first_is_dead(t *testing.T) {
	p := newPool(t, 1)
	for range 10 {
		first := <-p.acquire(1)
		p.queueDead()
		second := p.acquire(1)
		p.await(1, 2)
		began := time.Now()
		p.release(first)
		p.release(<-second)
		require.Less(t, time.Since(began), soon)
	}
}

// A call that wants more permits than there are is not in the queue. It has them as soon as there
// are as many, although it may be the turn of the stranger.
func TestStrangers_more_than_there_are(t *testing.T) {
	p := newPool(t, 1)
	for range 10 {
		require.NoError(t, p.Set(t.Context(), 1))
		large := p.acquire(5)
		p.await(1, 0)
		first := <-p.acquire(1)
		second := p.acquire(1)
		p.await(2, 1)
		began := time.Now()
		require.NoError(t, p.Set(t.Context(), 10))
		p.release(<-second)
		p.release(<-large)
		require.Less(t, time.Since(began), soon)
		p.release(first)
	}
}
