package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Other programs may set an expiry that is longer than a time.Duration can express. A waiter for
// such a key polls as seldom as any other.
func TestWaitersDoNotSpinOnTimesBeyondDurations(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	if server.Embedded() {
		t.Skip("miniredis counts in durations itself: there the key has ended")
	}
	const beyond = "9999999999" // s; 292 years are 9.2e9
	admin := rig.NewAdmin(t, server)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			name := rig.Name(t)
			hold := mustLock(t, k.open(connect(t, server), name), latchkey.Lease(time.Hour))
			require.EqualValues(t, 1, admin.Int("EXPIRE", name, beyond))
			fewAttempts(t, server, name, func(ctx context.Context, client *latchkey.Client) error {
				_, err := k.open(client, name).Lock(ctx)
				return err
			})
			mustUnlock(t, hold)
		})
	}
	t.Run("Semaphore", func(t *testing.T) {
		t.Parallel()
		s := newSemaphore(t, connect(t, server), 1)
		require.NoError(t, s.Acquire(t.Context()))
		require.EqualValues(t, 1, admin.Int("EXPIRE", s.Name(), beyond))
		fewAttempts(t, server, s.Name(), func(ctx context.Context, client *latchkey.Client) error {
			return client.NewSemaphore(s.Name()).Acquire(ctx)
		})
	})
	t.Run("CountDownLatch", func(t *testing.T) {
		t.Parallel()
		latch := connect(t, server).NewCountDownLatch(rig.Name(t))
		_, err := latch.TrySetCount(t.Context(), 1)
		require.NoError(t, err)
		for _, key := range admin.KeysOf(latch.Name()) {
			require.EqualValues(t, 1, admin.Int("EXPIRE", key, beyond))
		}
		fewAttempts(t, server, latch.Name(), func(ctx context.Context, client *latchkey.Client) error {
			return client.NewCountDownLatch(latch.Name()).Await(ctx)
		})
	})
}

// fewAttempts checks that a client sends few commands for a name while it waits.
func fewAttempts(t *testing.T, server *rig.Server, name string, wait func(context.Context, *latchkey.Client) error) {
	t.Helper()
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting := make(chan error, 1)
	go func() { waiting <- wait(ctx, client) }()
	rig.Eventually(t, soon, "it has an answer", func() error {
		if len(tap.Executed(rig.Mentions(name))) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	before, start := len(mentioning(tap, name)), time.Now()
	rest(400 * time.Millisecond)
	mentioned, took := len(mentioning(tap, name))-before, time.Since(start)
	cancel()
	require.ErrorIs(t, rig.Await(t, soon, "the waiter", waiting), context.Canceled)
	t.Logf("%d commands in %v", mentioned, took)
	assert.Less(t, mentioned, 15+int(50*took.Seconds()), "a spin lock, which asks most, has 24 pauses in a second")
}
