package lock_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// poll makes an attempt as a poller that polls again after ms, and returns the ms of the reply.
func (s handoverScripts) poll(owner string, ms int) any {
	s.t.Helper()
	reply := s.attemptPolling(owner, strconv.Itoa(ms))
	require.Len(s.t, reply, 4)
	return reply.([]any)[3]
}

// attemptPolling makes an attempt with the last argument of a poller.
func (s handoverScripts) attemptPolling(owner, poll string) any {
	s.t.Helper()
	if s.mutex {
		return s.Run(script.MutexAcquire, s.keys.Queued(), owner, "30000", s.entry(owner), "", poll)
	}
	return s.Run(script.LockAcquire, s.keys.Fenced(), owner, "30000", "1", "", "", "1", s.entry(owner), "", poll)
}

// A poller is passed over, and keeps its place, until it knows that it is the first. Then it is
// granted the lock, although nobody hears a message.
func TestHandoverScripts_poller(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB, ownerC)
		s.attempt(ownerA, "", "")
		s.wait(ownerB)
		s.Set(testredis.Epoch + 1)
		require.Equal(t, int64(2000), s.poll(ownerE, 2000))
		s.Set(testredis.Epoch + 2)
		s.wait(ownerC)
		require.Equal(t, s.granted(ownerB, "2"), s.release(ownerA, "", ""))
		require.Contains(t, <-heard, ownerB)
		require.Equal(t, s.granted(ownerC, "3"), s.release(ownerB, "", ""), "E is to ask in 2 s")
		require.Contains(t, <-heard, ownerC)
		require.Equal(t, []string{s.entry(ownerE), "~" + ownerE}, s.state().queue)

		s.Set(testredis.Epoch + 160_001)
		require.Equal(t, int64(15), s.poll(ownerE, 2000), "it is first, and has waited for 160 ms")
		s.Set(testredis.Epoch + 4_000_001)
		require.Equal(t, int64(100), s.poll(ownerE, 2000))
		s.wait(ownerB)
		require.Equal(t, s.granted(ownerE, "4"), s.release(ownerC, "", ""))
		s.check(ownerE, "4", ownerB)
		require.Equal(t, s.acquired("4"), s.attempt(ownerE, s.entry(ownerE), s.entry(ownerE)))
		require.Empty(t, heard)
	})
}

// If all who wait are pollers that are not about to poll, the lock stays free, and they keep their
// places. One that is late has the lock for a second; one that is later is gone.
func TestHandoverScripts_only_pollers(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		s.attempt(ownerA, "", "")
		s.attempt(ownerB, s.entry(ownerB), "") // does not listen, and never asks again
		s.Set(testredis.Epoch + 1)
		require.Equal(t, int64(2000), s.poll(ownerC, 2000))
		s.Set(testredis.Epoch + 2)
		require.Equal(t, int64(2000), s.poll(ownerE, 2000))
		require.Equal(t, int64(0), s.release(ownerA, "", ""))
		require.Empty(t, s.state().owner)
		require.Equal(t, []string{s.entry(ownerC), s.entry(ownerE), "~" + ownerC, "~" + ownerE}, s.state().queue)
		s.attempt(ownerA, "", "")
		s.Set(testredis.Epoch + 2_500_000)
		require.Equal(t, ownerC, s.release(ownerA, "", "").([]any)[0], "it is late")
		require.Equal(t, int64(1000), s.Do("PTTL", s.keys.Key))
		s.Set(testredis.Epoch + 3_100_000)
		require.Equal(t, int64(0), s.release(ownerC, "", ""), "E is gone")
		require.Equal(t, []string{"~" + ownerE}, s.state().queue)
		s.attempt(ownerA, "", "")
		s.poll(ownerB, 2000)
		require.Equal(t, []string{s.entry(ownerB), "~" + ownerB}, s.state().queue)
	})
}

// The poll time of a poller that listens now is removed.
func TestHandoverScripts_poller_listens(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		s.attempt(ownerA, "", "")
		s.poll(ownerB, 2000)
		s.attemptPolling(ownerB, "0")
		require.Equal(t, []string{s.entry(ownerB)}, s.state().queue)
	})
}

// A message for the first that listens passes over pollers, and they keep their places.
func TestHandoverScripts_ask_passes_over_pollers(t *testing.T) {
	eachHandover(t, func(t *testing.T, s handoverScripts) {
		heard := s.hear(ownerB)
		s.attempt(ownerA, "", "")
		s.wait(ownerC)
		for i := range 8 {
			s.Set(testredis.Epoch + 1 + int64(i))
			s.poll(ownerE+strconv.Itoa(i), 2000)
		}
		s.Set(testredis.Epoch + 9)
		s.wait(ownerB)
		s.release(ownerA, "", "")
		require.Contains(t, <-heard, ownerC)
		require.Equal(t, int64(0), s.release(ownerC, "", ""))
		require.Equal(t, "ask 0 "+ownerB+" "+s.keys.Key, <-heard)
		require.Len(t, s.state().queue, 17)
	})
}
