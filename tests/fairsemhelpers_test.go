package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The keys that a fair semaphore uses while somebody waits.
func permitQueueOf(name string) string  { return "latchkey_sc_queue:" + tagOf(name) }
func permitAliveOf(name string) string  { return "latchkey_sc_alive:" + tagOf(name) }
func permitGrantsOf(name string) string { return "latchkey_sc_grants:" + tagOf(name) }

// tagOf returns the name in braces, or the name itself if it has braces.
func tagOf(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// newFairPermits returns a fair semaphore with a new name.
func newFairPermits(t *testing.T, client *latchkey.Client, permits int) *latchkey.PermitSemaphore {
	t.Helper()
	s := client.NewFairSemaphore(rig.Name(t))
	require.NoError(t, s.SetPermits(t.Context(), permits))
	return s
}

// neverStale keeps a waiter in the queue, however long a busy machine does not let its client run.
var neverStale = latchkey.Options{Tuning: latchkey.Tuning{StaleWaiterTimeout: time.Minute}, RetryBudget: soon}

func neverStaleClients(t *testing.T, server *rig.Server, n int) (clients []*latchkey.Client) {
	t.Helper()
	for range n {
		clients = append(clients, connect(t, server, neverStale))
	}
	return clients
}

// permitsGot is the result of an acquisition.
type permitsGot struct {
	permits []*latchkey.Permit
	err     error
}

func (g permitsGot) release(t *testing.T) {
	t.Helper()
	require.NoError(t, g.giveBack())
}

func (g permitsGot) giveBack() (err error) {
	for _, p := range g.permits {
		err = errors.Join(err, p.Release(context.Background()))
	}
	return err
}

// queueForPermits starts a waiter for n permits and returns when it is in the queue.
func queueForPermits(ctx context.Context, t *testing.T, admin *rig.Admin, s *latchkey.PermitSemaphore, n int, options ...latchkey.PermitOption) <-chan permitsGot {
	t.Helper()
	before := admin.Int("ZCARD", permitQueueOf(s.Name()))
	got := make(chan permitsGot, 1)
	go func() {
		permits, err := s.AcquireN(ctx, n, options...)
		got <- permitsGot{permits, err}
	}()
	permitQueueLength(t, admin, s.Name(), before+1)
	return got
}

func permitQueueLength(t *testing.T, admin *rig.Admin, name string, want int64) {
	t.Helper()
	rig.Eventually(t, soon, fmt.Sprintf("%d in the queue", want), func() error {
		if got := admin.Int("ZCARD", permitQueueOf(name)); got != want {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
}

// fairCounts waits until these numbers of permits are available and acquired.
func fairCounts(t *testing.T, s *latchkey.PermitSemaphore, available, acquired int) {
	t.Helper()
	rig.Eventually(t, soon, "the permits", func() error {
		stats, err := statsOf(context.Background(), s)
		if err == nil && (stats.Available != available || stats.HolderCount != acquired) {
			err = fmt.Errorf("%+v", stats)
		}
		return err
	})
}

// nothingWaits waits until nothing is left of the queue.
func nothingWaits(t *testing.T, admin *rig.Admin, name string) {
	t.Helper()
	rig.Eventually(t, soon, "nothing is left of the queue", func() error {
		for _, key := range []string{permitQueueOf(name), permitAliveOf(name), permitGrantsOf(name)} {
			if admin.Int("EXISTS", key) != 0 {
				return errors.New(key)
			}
		}
		return nil
	})
}

// permitChannelOf returns the channel on which a client receives its grants.
func permitChannelOf(server *rig.Server, client *latchkey.Client, name string) string {
	if server.Clustered() {
		return "latchkey:{" + name + "}:" + client.ID()
	}
	return "latchkey:{" + client.ID() + "}"
}
