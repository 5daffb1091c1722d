package interop

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// commonRWLock is a read/write lock with a client of each side.
type commonRWLock struct {
	t           *testing.T
	where       place
	admin       *rig.Admin
	name        string
	lock        *latchkey.RWLock
	java        *java
	read, write fields
}

func newCommonRWLock(t *testing.T, version string, options latchkey.Options, settings fields) *commonRWLock {
	t.Helper()
	where, name := here(t), rig.Name(t)
	return &commonRWLock{
		t: t, where: where, admin: where.admin, name: name,
		lock: where.connect(t, options).NewRWLock(name), java: where.java(t, version, settings),
		read:  fields{"kind": "read", "name": name},
		write: fields{"kind": "write", "name": name},
	}
}

func eachCommonRWLock(t *testing.T, options latchkey.Options, settings fields, test func(t *testing.T, s *commonRWLock)) {
	t.Helper()
	eachVersion(t, func(t *testing.T, version string) { test(t, newCommonRWLock(t, version, options, settings)) })
}

func (s *commonRWLock) goRead() *latchkey.Hold  { s.t.Helper(); return mustLock(s.t, s.lock.Reader()) }
func (s *commonRWLock) goWrite() *latchkey.Hold { s.t.Helper(); return mustLock(s.t, s.lock.Writer()) }

func mustLock(t *testing.T, lock anyLock, options ...latchkey.LockOption) *latchkey.Hold {
	t.Helper()
	hold, err := lock.Lock(within(t, soon), options...)
	require.NoError(t, err)
	return hold
}

func mustUnlock(t *testing.T, hold *latchkey.Hold) {
	t.Helper()
	require.NoError(t, hold.Unlock(context.Background()))
}

// nobodyWrites checks that neither side can write now.
func (s *commonRWLock) nobodyWrites() { s.t.Helper(); s.refused(s.lock.Writer(), s.write) }

// refused checks that neither side can acquire one side of the lock now.
func (s *commonRWLock) refused(lock anyLock, f fields) {
	s.t.Helper()
	_, err := lock.TryLock(within(s.t, soon))
	require.ErrorIs(s.t, err, latchkey.ErrNotAcquired)
	require.False(s.t, s.java.on("other").truth("lock.try", f))
}

// readable checks that both sides can acquire and release the read side.
func (s *commonRWLock) readable() {
	s.t.Helper()
	mustUnlock(s.t, s.goRead())
	other := s.java.on("other")
	require.True(s.t, other.truth("lock.try", s.read))
	other.do("lock.unlock", s.read)
}

// unreadable checks that neither side can read now.
func (s *commonRWLock) unreadable() { s.t.Helper(); s.refused(s.lock.Reader(), s.read) }

// free checks that both sides can write, and that nothing of Redisson's format is left.
func (s *commonRWLock) free() {
	s.t.Helper()
	mustUnlock(s.t, s.goWrite())
	other := s.java.on("other")
	require.True(s.t, other.truth("lock.try", s.write))
	other.do("lock.unlock", s.write)
	for _, key := range s.admin.KeysOf(s.name) {
		if !strings.HasPrefix(key, "redisson_unlock_latch:") {
			assert.Failf(s.t, "something is left", "%s", key)
		}
	}
}

// When a reader leaves, the others of either side keep reading and nobody can write, even after the
// lease of the first reader.
func TestReadersOfBothSides(t *testing.T) {
	t.Parallel()
	short := latchkey.Options{Lease: shortLease}
	watchdog := fields{"lockWatchdogTimeout": shortLease.Milliseconds()}
	eachCommonRWLock(t, short, watchdog, func(t *testing.T, s *commonRWLock) {
		one, two := s.java.on("one"), s.java.on("two")
		first, second := s.goRead(), s.goRead()
		again, err := s.lock.Reader().Lock(first.Context(within(t, soon)))
		require.NoError(t, err)
		one.do("lock.lock", s.read)
		one.do("lock.lock", s.read)
		two.do("lock.lock", s.read)
		assert.EqualValues(t, 2, one.number("lock.holdCount", s.read))

		s.nobodyWrites()
		one.do("lock.unlock", s.read)
		mustUnlock(t, again)
		two.do("lock.unlock", s.read)
		one.do("lock.unlock", s.read)
		s.nobodyWrites() // only Go reads
		keeps(t, lastingLeases(), "Go goes on reading", first.Err)
		one.do("lock.lock", s.read)
		mustUnlock(t, second)
		mustUnlock(t, first)
		s.nobodyWrites() // only Java reads
		keeps(t, lastingLeases(), "Java goes on reading", func() error {
			require.True(t, one.truth("lock.isHeld", s.read))
			return nil
		})
		s.readable()
		one.do("lock.unlock", s.read)
		s.free()
	})
}

// A writer of Redisson that keeps reading lets in readers of both sides, but no writer until it has
// left.
func TestJavaDowngrade(t *testing.T) {
	t.Parallel()
	eachCommonRWLock(t, latchkey.Options{}, nil, func(t *testing.T, s *commonRWLock) {
		one := s.java.on("one")
		one.do("lock.lock", s.write)
		one.do("lock.lock", s.write)
		s.unreadable()
		one.do("lock.lock", s.read)
		one.do("lock.unlock", s.write)
		s.unreadable()
		waiting := inBackground(func() (*latchkey.Hold, error) { return s.lock.Reader().Lock(within(t, soon)) })
		one.do("lock.unlock", s.write)
		reader := rig.Await(t, soon, "a waiting reader of Go, which Redisson does not wake", waiting)
		require.NoError(t, reader.err)
		s.nobodyWrites()
		s.readable()
		one.do("lock.unlock", s.read)
		s.nobodyWrites()
		mustUnlock(t, reader.value)
		s.free()
	})
}

// A writer of this library that keeps reading wakes readers of Redisson.
func TestGoDowngrade(t *testing.T) {
	t.Parallel()
	eachCommonRWLock(t, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: wakeCeiling}}, nil, func(t *testing.T, s *commonRWLock) {
		one := s.java.on("one")
		writer := s.goWrite()
		s.unreadable()
		waiting := one.start("lock.lock", s.read)
		subscribed(t, s.admin, "redisson_rwlock:{"+s.name+"}", 1)
		began := time.Now()
		reader, err := writer.Downgrade(within(t, soon))
		require.NoError(t, err)
		a := rig.Await(t, 2*wakeCeiling, "a waiting reader of Java", waiting)
		require.NoError(t, a.err())
		assert.Less(t, a.ended().Sub(began), wakeLimit)
		s.nobodyWrites()
		mustUnlock(t, reader)
		s.nobodyWrites()
		s.readable()
		one.do("lock.unlock", s.read)
		s.free()
	})
}

// A writer of this library that has also entered the read side, and leaves the write side first, is
// a reader for Redisson.
func TestGoWriterReads(t *testing.T) {
	t.Parallel()
	eachCommonRWLock(t, latchkey.Options{}, nil, func(t *testing.T, s *commonRWLock) {
		writer := s.goWrite()
		reader, err := s.lock.Reader().Lock(writer.Context(within(t, soon)))
		require.NoError(t, err)
		other := s.java.on("other")
		assert.True(t, other.truth("lock.isLocked", s.write))
		assert.True(t, other.truth("lock.isLocked", s.read), "a writer that reads")
		s.unreadable()
		mustUnlock(t, writer)
		assert.False(t, other.truth("lock.isLocked", s.write))
		assert.True(t, other.truth("lock.isLocked", s.read))
		s.nobodyWrites()
		s.readable()
		require.NoError(t, reader.Err())
		mustUnlock(t, reader)
		s.free()
	})
}

// anyLock has the methods of every lock.
type anyLock interface {
	latchkey.Locker
	Inspect(ctx context.Context) (latchkey.Object, error)
	ForceUnlock(ctx context.Context) (bool, error)
}
