package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A killed reader of this library does not keep writers out after the Redisson readers next to it
// have left. Redisson before 4.4.0 renews the leases of all readers, including dead ones, as long
// as one of its own reads. After that the behavior is the same.
func TestKilledGoReader(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	watchdog := fields{"lockWatchdogTimeout": shortLease.Milliseconds()}
	eachCommonRWLock(t, latchkey.Options{}, watchdog, func(t *testing.T, s *commonRWLock) {
		text, err := json.Marshal([]lasting{{Holds: "read", Name: s.name}})
		require.NoError(t, err)
		victim := holderProcess.Start(t, s.where.server.URL(), string(text))
		victim.Line(t, soon, "holding")
		one := s.java.on("one")
		one.do("lock.lock", s.read)
		victim.Kill()

		waiting := s.java.on("writer").start("lock.try", merge(s.write, fields{"wait": patience.Milliseconds()}))
		keeps(t, twoLeases, "the reader of Java keeps the lock", func() error {
			require.Empty(t, waiting)
			return nil
		})
		one.do("lock.unlock", s.read)
		a := rig.Await(t, 2*soon, "the writer of Java", waiting)
		require.True(t, value[bool](t, a))
		s.java.on("writer").do("lock.unlock", s.write)
		s.free()
	})
}

// A killed reader of Redisson does not keep writers out for longer than its lease plus a lease of
// ours.
func TestKilledJavaReader(t *testing.T) {
	rig.Long(t)
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		s := newCommonRWLock(t, version, latchkey.Options{Lease: shortLease}, nil)
		own := startJVM(t, version)
		dying := s.where.javaIn(t, own, fields{"lockWatchdogTimeout": shortLease.Milliseconds()})
		reader := s.goRead()
		dying.on("one").do("lock.lock", s.read)
		own.kill()
		writer := inBackground(func() (*latchkey.Hold, error) { return s.lock.Writer().Lock(within(t, patience)) })
		keeps(t, twoLeases, "the reader of Go keeps the lock", func() error {
			require.Empty(t, writer)
			return reader.Err()
		})
		mustUnlock(t, reader)
		released := time.Now()
		got := rig.Await(t, 2*soon, "the writer", writer)
		require.NoError(t, got.err)
		assert.Less(t, got.at.Sub(released), recovery)
		mustUnlock(t, got.value)
		s.free()
	})
}

func merge(all ...fields) fields {
	merged := fields{}
	for _, f := range all {
		for name, value := range f {
			merged[name] = value
		}
	}
	return merged
}

// The watchdog of a Redisson reader sets the TTL of the lock to its own timeout, even if a reader
// of this library has a longer lease. Before 4.4.0 it also sets the lease of that reader. The page
// on compatibility says what follows from this. If this test fails, Redisson has changed.
func TestJavaReaderCutsLongLease(t *testing.T) {
	t.Parallel()
	watchdog := fields{"lockWatchdogTimeout": shortLease.Milliseconds()}
	eachCommonRWLock(t, latchkey.Options{}, watchdog, func(t *testing.T, s *commonRWLock) {
		reader := mustLock(t, s.lock.Reader(), latchkey.Lease(time.Minute))
		one := s.java.on("one")
		one.do("lock.lock", s.read)
		rig.Eventually(t, soon, "the time of the lock is cut", func() error {
			if left := s.admin.PTTL(s.name); left > shortLease {
				return fmt.Errorf("%v", left)
			}
			return nil
		})
		one.do("lock.unlock", s.read)
		left := s.admin.PTTL(s.name)
		if before(t, s.java.jvm.version, 4, 4) {
			assert.LessOrEqual(t, left, shortLease)
		} else {
			assert.Greater(t, left, shortLease, "its release sets the time right")
		}
		mustUnlock(t, reader)
		s.free()
	})
}

// A lease of this library that Redisson ended by force does not count as a reader. It would hide a
// reader of Redisson, whose lock must not be cut to a lease of ours.
func TestForcedReaderIsForgotten(t *testing.T) {
	t.Parallel()
	eachCommonRWLock(t, latchkey.Options{}, nil, func(t *testing.T, s *commonRWLock) {
		one := s.java.on("one")
		forced := s.goRead()
		require.True(t, one.truth("lock.force", s.read))
		one.do("lock.lock", s.read) // for 30 s, renewed after 10 s
		short := mustLock(t, s.lock.Reader(), latchkey.Lease(10*time.Second))
		mustUnlock(t, s.goRead())
		assert.Greater(t, s.admin.PTTL(s.name), 10*time.Second, "the lock that Redisson's reader holds")
		assert.ErrorIs(t, forced.Unlock(context.Background()), latchkey.ErrNotHeld)
		mustUnlock(t, short)
		one.do("lock.unlock", s.read)
		mustUnlock(t, s.goWrite())
	})
}
