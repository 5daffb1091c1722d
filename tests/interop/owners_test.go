package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// The non-reentrant locks of Redisson, which only newer versions have, and the locks of this
// library exclude and wake each other.
func TestNonReentrant(t *testing.T) {
	t.Parallel()
	where := here(t)
	client, j := where.connect(t, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: wakeCeiling}}), where.java(t, latest)
	for kind, ours := range map[string]string{"once": "lock", "fair once": "fair"} {
		t.Run(kind, func(t *testing.T) {
			name := rig.Name(t)
			lock, f, one := lockOf(client, ours, name), fields{"name": name, "kind": kind}, j.as(t).on("one")
			hold := mustLock(t, lock)
			waiting := one.start("lock.lock", f)
			listening(t, where.admin, name)
			released := time.Now()
			mustUnlock(t, hold)
			a := rig.Await(t, patience, "Java acquires", waiting)
			require.NoError(t, a.err())
			assert.Less(t, a.ended().Sub(released), wakeLimit)

			assert.Equal(t, notHeld, one.try("lock.lock", f).Error, "it cannot be entered again")
			one.do("lock.unlock", f)

			// A new name: the subscription of Java's waiter may linger.
			name = rig.Name(t)
			lock, f = lockOf(client, ours, name), fields{"name": name, "kind": kind}
			one.do("lock.lock", f)
			goWaiting := inBackground(func() (*latchkey.Hold, error) { return lock.Lock(within(t, patience)) })
			listening(t, where.admin, name)
			began := one.do("lock.unlock", f).began()
			got := rig.Await(t, patience, "Go acquires", goWaiting)
			require.NoError(t, got.err)
			assert.Less(t, got.at.Sub(began), wakeLimit)
			mustUnlock(t, got.value)
		})
	}
}

// In Redisson's asynchronous calls, the caller passes a number as the owner. Here that is an owner
// like any other.
func TestOwnersByNumber(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, []string{"lock", "fair", "write"}, latchkey.Options{}, func(t *testing.T, p *commonLock) {
		one, two := p.java.on("one"), p.java.on("two")
		f := merge(p.f, fields{"owner": 123_456_789_012})
		one.do("lock.lockFor", f)
		two.do("lock.lockFor", f) // once more, in another thread
		id := value[string](t, one.do("client.id", nil))
		assert.Equal(t, []latchkey.Holder{{Owner: ownerOf(t, fmt.Sprint(id, ":123456789012")), Count: 2, Write: p.kind == "write"}}, p.holders())
		_, err := p.lock.TryLock(within(t, soon))
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		assert.True(t, two.truth("lock.isHeldFor", f))
		one.do("lock.unlockFor", f)
		one.do("lock.unlockFor", f)
		mustUnlock(t, mustLock(t, p.lock))
	})
}

// A process of this library may enter the hold of a Redisson thread. The lock is free when both
// have left, in whichever order; Redisson takes the guest for a re-entry. Redisson's lease must not
// be shorter than the guest's, because it sets the TTL of the lock.
func TestGuestOfJava(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where := here(t)
		client := where.connect(t, latchkey.Options{Lease: shortLease})
		j := where.java(t, version, fields{"lockWatchdogTimeout": shortLease.Milliseconds()})
		for _, kind := range []string{"lock", "fair", "fenced", "spin"} {
			for _, first := range []string{"Go", "Java"} {
				t.Run(kind+", "+first+" leaves first", func(t *testing.T) {
					t.Parallel()
					where.newCommonLock(t, client, j, kind).guest(first)
				})
			}
		}
	})
}

func (p *commonLock) guest(first string) {
	p.t.Helper()
	one, two := p.java.on("one"), p.java.on("two")
	one.do("lock.lock", p.f)
	owner, err := latchkey.ParseOwner(p.javaOwner("one"))
	require.NoError(p.t, err)
	guest := mustLock(p.t, p.lock, latchkey.As(owner))
	if first == "Go" {
		mustUnlock(p.t, guest)
	} else {
		one.do("lock.unlock", p.f)
	}
	keeps(p.t, lastingLeases(), "one of them is left", func() error {
		require.False(p.t, two.truth("lock.try", p.f))
		if first == "Go" {
			return nil
		}
		return guest.Err()
	})
	if first == "Go" {
		one.do("lock.unlock", p.f)
	} else {
		mustUnlock(p.t, guest)
	}
	mustUnlock(p.t, mustLock(p.t, p.lock))
}

// ownerOf parses an owner.
func ownerOf(t *testing.T, text string) latchkey.Owner {
	t.Helper()
	owner, err := latchkey.ParseOwner(text)
	require.NoError(t, err)
	return owner
}
