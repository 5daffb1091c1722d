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

// The locks of Redisson that cannot be entered again, which only newer versions have, and
// those of this library exclude and wake each other.
func TestNonReentrant(t *testing.T) {
	t.Parallel()
	where := here(t)
	client, j := where.connect(t, latchkey.Options{PollCeiling: wakeCeiling}), where.java(t, latest)
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

			// Another name: the subscription of Java's waiter may linger.
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

// Redisson's asynchronous calls name an owner by a number of the caller's. Here it is an
// owner like any other.
func TestOwnersByNumber(t *testing.T) {
	t.Parallel()
	eachPairing(t, []string{"lock", "fair", "write"}, latchkey.Options{}, func(t *testing.T, p *pairing) {
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

// A process of this library may enter what a thread of Redisson holds. The lock is free
// when both have left, whoever leaves first; Redisson takes the guest for a re-entry. Its
// lease must not be shorter than the guest's: what it does sets the time of the lock.
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
					where.pairing(t, client, j, kind).guest(first)
				})
			}
		}
	})
}

func (p *pairing) guest(first string) {
	p.t.Helper()
	one, two := p.java.on("one"), p.java.on("two")
	one.do("lock.lock", p.f)
	owner, err := latchkey.ParseOwner(p.javaOwner("one"))
	require.NoError(p.t, err)
	guest := mustLock(p.t, p.lock, latchkey.By(owner))
	if first == "Go" {
		mustUnlock(p.t, guest)
	} else {
		one.do("lock.unlock", p.f)
	}
	rig.Throughout(p.t, twoLeases, "one of them is left", func() error {
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

// ownerOf is the owner of that text.
func ownerOf(t *testing.T, text string) latchkey.Owner {
	t.Helper()
	owner, err := latchkey.ParseOwner(text)
	require.NoError(t, err)
	return owner
}
