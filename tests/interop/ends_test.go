package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// notHeld is what Redisson throws when a thread releases a lock that it does not hold.
const notHeld = "java.lang.IllegalMonitorStateException"

// fixedLease is a lease that is not renewed.
const fixedLease = time.Second

// This library can take a lock from Redisson by force. The thread that held it gets an error when
// it releases.
func TestGoForces(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, allKinds, latchkey.Options{}, goForces)
}

func goForces(t *testing.T, p *commonLock) {
	t.Helper()
	one, two := p.java.on("one"), p.java.on("two")
	one.do("lock.lock", p.f)
	acquire := func() <-chan answer {
		return two.start("lock.try", merge(p.f, fields{"wait": patience.Milliseconds()}))
	}
	var waiting <-chan answer
	if p.kind != "read" { // the other side gets in at once
		waiting = acquire()
	}
	if p.kind != "spin" && p.kind != "read" { // these need no message
		listening(t, p.admin, p.name)
	}
	freed, err := p.lock.ForceUnlock(within(t, soon))
	require.NoError(t, err)
	assert.True(t, freed)
	if p.kind == "read" {
		waiting = acquire()
	}
	a := rig.Await(t, soon, "the next thread", waiting)
	assert.True(t, value[bool](t, a), "it waits for its whole lease otherwise")
	assert.False(t, one.truth("lock.isHeld", p.f))
	assert.Equal(t, notHeld, one.try("lock.unlock", p.f).Error)
	two.do("lock.unlock", p.f)
	freed, err = p.lock.ForceUnlock(within(t, soon))
	require.NoError(t, err)
	assert.False(t, freed, "it is free")
}

// Redisson can take a lock from this library by force. The hold is lost, and reports it.
func TestJavaForces(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, allKinds, latchkey.Options{Lease: shortLease}, javaForces)
}

func javaForces(t *testing.T, p *commonLock) {
	t.Helper()
	p.endsLost(mustLock(t, p.lock), func() {
		assert.True(t, p.java.on("one").truth("lock.force", p.f))
	})
	assert.False(t, p.java.on("one").truth("lock.force", p.f), "it is free")
}

// endsLost takes a hold away and checks that the hold reports its loss. It learns of it at a
// renewal.
func (p *commonLock) endsLost(hold *latchkey.Hold, take func()) {
	p.t.Helper()
	work := hold.Context(p.t.Context())
	take()
	rig.Await(p.t, soon, "the hold is lost", hold.Lost())
	rig.Await(p.t, soon, "its context ends", work.Done())
	assert.ErrorIs(p.t, hold.Err(), latchkey.ErrLost)
	assert.ErrorIs(p.t, context.Cause(work), latchkey.ErrLost)
	err := hold.Unlock(context.Background())
	assert.ErrorIs(p.t, err, latchkey.ErrNotHeld)
	assert.ErrorIs(p.t, err, latchkey.ErrLost)
}

// When Redisson deletes a lock object, the hold here is lost, and the lock is free.
func TestJavaDeletes(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, allKinds, latchkey.Options{Lease: shortLease}, javaDeletes)
}

func javaDeletes(t *testing.T, p *commonLock) {
	t.Helper()
	one := p.java.on("one")
	p.endsLost(mustLock(t, p.lock), func() { assert.True(t, one.truth("lock.delete", p.f)) })
	one.do("lock.lock", p.f)
	one.do("lock.unlock", p.f)
	mustUnlock(t, mustLock(t, p.lock))
}

// The end of a fixed lease of Redisson frees the lock for this library. The thread that held it
// gets an error when it releases.
func TestJavaLeaseEnds(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, locks, latchkey.Options{}, javaLeaseEnds)
}

func javaLeaseEnds(t *testing.T, p *commonLock) {
	t.Helper()
	one := p.java.on("one")
	one.do("lock.lock", merge(p.f, fields{"lease": fixedLease.Milliseconds()}))
	began := time.Now()
	hold := mustLock(t, p.lock)
	assert.Less(t, time.Since(began), fixedLease+wakeLimit)
	assert.Equal(t, notHeld, one.try("lock.unlock", p.f).Error)
	mustUnlock(t, hold)
}

// The end of a fixed lease of this library frees the lock for Redisson. The hold reports its loss
// before that.
func TestGoLeaseEnds(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, locks, latchkey.Options{}, goLeaseEnds)
}

func goLeaseEnds(t *testing.T, p *commonLock) {
	t.Helper()
	if p.kind == "fair" && fairHangs(t, p.java.jvm.version) {
		t.Log("fair waiters of this version sleep on: see fairHangs")
		return
	}
	hold := mustLock(t, p.lock, latchkey.Lease(fixedLease))
	one := p.java.on("one")
	a := rig.Await(t, fixedLease+wakeLimit, "Java acquires",
		one.start("lock.try", merge(p.f, fields{"wait": patience.Milliseconds()})))
	require.True(t, value[bool](t, a))
	assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
	assert.ErrorIs(t, hold.Unlock(context.Background()), latchkey.ErrNotHeld)
	assert.True(t, one.truth("lock.isHeld", p.f), "the late release does not touch it")
	one.do("lock.unlock", p.f)
}
