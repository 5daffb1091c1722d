package rig_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/tests/rig"
)

// pass sends several goroutines through a section and returns how many passes succeeded and how
// many were refused.
func pass(t *testing.T, section *rig.Section, protect sync.Locker) (passed, refused int) {
	t.Helper()
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 50 {
				protect.Lock()
				err := section.Pass(t.Context())
				protect.Unlock()
				mu.Lock()
				if err != nil {
					refused++
				} else {
					passed++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return passed, refused
}

func TestSectionAcceptsALock(t *testing.T) {
	section := rig.NewSection(rig.Shared().Raw(t), rig.Name(t))
	passed, refused := pass(t, section, &sync.Mutex{})
	assert.Zero(t, refused)
	require.Equal(t, 400, passed)
	section.Verify(t, 400)
}

// noLock is a lock that does not lock.
type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

func TestSectionNoticesThatThereIsNoLock(t *testing.T) {
	section := rig.NewSection(rig.Shared().Raw(t), rig.Name(t))
	_, refused := pass(t, section, noLock{})
	assert.NotZero(t, refused)
	assert.Contains(t, failureOf(t, func(tb testing.TB) { section.Verify(tb, 400) }), "inside the critical section")
}

func TestSectionNoticesALostUpdate(t *testing.T) {
	section := rig.NewSection(rig.Shared().Raw(t), rig.Name(t))
	require.NoError(t, section.Pass(t.Context()))
	assert.Contains(t, failureOf(t, func(tb testing.TB) { section.Verify(tb, 2) }), "1 were lost")
}

func TestTally(t *testing.T) {
	tally := rig.NewTally(2)
	tally.Add(0, time.Second)
	tally.Add(0, time.Millisecond)
	tally.Add(1, time.Minute)
	assert.Equal(t, 3, tally.Total())
	assert.Equal(t, 1, tally.Fewest())
	assert.Equal(t, time.Minute, tally.Longest())
}
