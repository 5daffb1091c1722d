package tests

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// misled is a client whose commands reach a master, and whose next connections reach its replica.
type misled struct {
	*latchkey.Client

	dials  atomic.Int32 // connections since it was misled
	wrong  atomic.Int32 // how many more of them reach the replica
	lock   string
	holder *latchkey.Hold
	waiter <-chan acquisition
	master *rig.Admin
	next   *rig.Admin
}

// newMisled returns a client that waits for a lock. The first connections of its subscription reach
// the replica.
func newMisled(t *testing.T, wrong int32, options latchkey.Options) *misled {
	t.Helper()
	r := rig.NewReplicated(t, 1, 0)
	m := &misled{lock: rig.Name(t), master: rig.NewAdmin(t, r.Master), next: rig.NewAdmin(t, r.Replicas[0])}
	m.holder = mustLock(t, connect(t, r.Master).NewLock(m.lock))
	m.Client = open(t, rueidis.ClientOption{
		InitAddress: []string{"tunnel:1"},
		DialCtxFn: func(ctx context.Context, _ string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			m.dials.Add(1)
			if m.wrong.Add(-1) >= 0 {
				return dialer.DialContext(ctx, "tcp", r.Replicas[0].Addr())
			}
			return dialer.DialContext(ctx, "tcp", r.Master.Addr())
		},
	}, options)
	require.NoError(t, m.Check(t.Context()))
	rig.Eventually(t, soon, "the server has closed the subscription of Check", func() error {
		if n := m.master.Subscribers(beatOf(m.Client)); n > 0 {
			return fmt.Errorf("%d subscribers", n)
		}
		return nil
	})
	m.dials.Store(0)
	m.wrong.Store(wrong)
	m.waiter = lockInBackground(within(t, time.Minute), m.NewLock(m.lock))
	return m
}

// release releases the lock, and checks that the client gets it.
func (m *misled) release(t *testing.T) {
	t.Helper()
	mustUnlock(t, m.holder)
	got := rig.Await(t, soon, "the waiter", m.waiter)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
}

// A former master that restarts as a replica may be where a client opens its subscription, because
// the client has not heard of the failover. The client moves to the master at once, so that the
// lock is handed over to it.
func TestHandover_subscription_opened_at_a_replica(t *testing.T) {
	t.Parallel()
	m := newMisled(t, 1, seldom())
	rig.Eventually(t, soon, "the subscription is at the master", func() error {
		if m.master.Subscribers(beatOf(m.Client)) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	assert.GreaterOrEqual(t, m.dials.Load(), int32(2), "it was at the replica first")
	rig.Eventually(t, soon, "the waiter is in the queue", func() error {
		if m.master.Int("ZCARD", queueKey(m.lock)) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	m.release(t)
}

// A client does not look forever for a server that counts its subscription.
func TestHandover_subscription_that_is_never_counted(t *testing.T) {
	t.Parallel()
	const links, later = 4, 2
	m := newMisled(t, math.MaxInt32, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: time.Second}})
	rig.Eventually(t, 2*soon, "more beats of the last link", func() error {
		if n := m.master.CommandStats()["publish"]; n < links+later {
			return fmt.Errorf("%d beats", n)
		}
		return nil
	})
	dials := m.dials.Load()
	t.Logf("%d connections", dials)
	assert.GreaterOrEqual(t, dials, int32(links))
	assert.Less(t, dials, int32(2*links), "a busy machine may need one more")
	assert.Equal(t, int64(1), m.next.Subscribers(beatOf(m.Client)))
	m.release(t)
}
