package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOccupancyCountsOverlaps(t *testing.T) {
	t.Parallel()
	o := occupancy{capacity: permitCount}
	for range permitCount {
		o.enter(1)
	}
	assert.Zero(t, o.overlaps.Load())
	o.enter(1)
	assert.EqualValues(t, 1, o.overlaps.Load())

	readers := occupancy{capacity: readWrite{}.capacity()}
	readers.enter(1)
	readers.enter(1)
	assert.Zero(t, readers.overlaps.Load())
	readers.enter(alonePart)
	assert.EqualValues(t, 1, readers.overlaps.Load(), "a writer beside readers")
}

// needServer skips a test on a machine without a server program. CI has one.
func needServer(t *testing.T) {
	t.Helper()
	if _, err := serverProgram(); err != nil {
		t.Skip(err)
	}
}

// The whole program, with a server, a link and child processes.
func TestRun(t *testing.T) {
	t.Parallel()
	needServer(t)
	out := t.TempDir()
	s := &settings{
		quick: true, repetitions: 1, time: 20 * time.Millisecond, lease: time.Second, many: 50, out: out,
		links: []time.Duration{0, 2 * time.Millisecond}, only: "uncontended-1,contended-1x16,semaphore,clients-lock",
		peers: "floor,latchkey,redislock",
	}
	require.NoError(t, run(t.Context(), s))
	text, err := os.ReadFile(filepath.Join(out, "results.md"))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "failed")
	assert.Contains(t, string(text), "| latchkey |")
	assert.Contains(t, string(text), "| latchkey | 100 |")
	for _, name := range []string{"samples.json", "semaphore.svg", "semaphore-2ms.svg", "uncontended-1.svg", "clients-lock.svg"} {
		assert.FileExists(t, filepath.Join(out, name))
	}
}
