package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

// A permit that never expires is released by its id, and goes to the first waiter of a fair
// semaphore.
func TestSemRelease(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	fair := unnamed(server).NewFairSemaphore("pool")
	require.NoError(t, fair.SetPermits(t.Context(), 1))
	held, err := fair.Acquire(t.Context(), latchkey.Lease(latchkey.NoExpiry))
	require.NoError(t, err)
	next := make(chan error, 1)
	go func() {
		_, err := unnamed(server).NewFairSemaphore("pool").Acquire(t.Context(), latchkey.Wait(testPatience))
		next <- err
	}()
	eventually(t, "somebody waits", func() bool {
		waiters, err := fair.Waiters(t.Context())
		return err == nil && len(waiters) == 1
	})
	unknown := "0123456789abcdef0123456789abcdef"
	got := latchkeyCLI(t, server, "sem", "release", "--force", "pool", unknown, held.ID(), unknown)
	assert.Equal(t, result{stdout: unknown + " was not held\n" + held.ID() + " is released\n"}, got)
	require.NoError(t, <-next)

	got = latchkeyCLI(t, server, "sem", "release", "--force", "pool", held.ID(), "--json")
	assert.Zero(t, got.code)
	assert.JSONEq(t, `{"name": "pool", "permits": [{"id": "`+held.ID()+`", "was_held": false}]}`, got.stdout)
}

func TestSemRelease_of_no_permit(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, unnamed(server).NewLock("pool"))
	_, err := unnamed(server).NewSemaphore("plain").TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	for _, is := range []struct {
		name, id string
		code     int
	}{
		{"pool", "0123456789abcdef0123456789abcdef", exitSoftware},
		{"plain", "0123456789abcdef0123456789abcdef", exitSoftware},
		{"unset", "worker-1", exitUsage},
	} {
		got := latchkeyCLI(t, server, "sem", "release", "--force", is.name, is.id)
		assert.Equal(t, is.code, got.code, is.name)
		assert.Empty(t, got.stdout)
		assertOneLine(t, got.stderr)
	}
}
