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

// commonLock is one lock of one kind, with a client of each side.
type commonLock struct {
	t     *testing.T
	admin *rig.Admin
	kind  string
	name  string
	lock  anyLock
	java  *java
	f     fields
}

// eachCommonLock runs a test for every kind of lock, with every version of Redisson.
func eachCommonLock(t *testing.T, kinds []string, options latchkey.Options, test func(t *testing.T, p *commonLock)) {
	t.Helper()
	where := here(t)
	eachVersion(t, func(t *testing.T, version string) {
		client, j := where.connect(t, options), where.java(t, version)
		for _, kind := range kinds {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				test(t, where.newCommonLock(t, client, j, kind))
			})
		}
	})
}

// newCommonLock returns one lock of a kind for two clients.
func (p place) newCommonLock(t *testing.T, client *latchkey.Client, j *java, kind string) *commonLock {
	t.Helper()
	name := rig.Name(t)
	return &commonLock{
		t: t, admin: p.admin, kind: kind, name: name, lock: lockOf(client, kind, name),
		java: j.as(t), f: fields{"kind": kind, "name": name},
	}
}

// as returns the client for a subtest, which gets its own threads. A failure is that of the
// subtest.
func (c *java) as(t *testing.T) *java {
	t.Helper()
	return &java{t: t, jvm: c.jvm, id: c.id, scope: fmt.Sprint(clients.Add(1), "-")}
}

// allKinds are the locks that exclude, and readers.
var allKinds = append([]string{"read"}, locks...)

// The queries of each side see what the other side holds.
func TestLockQueries(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, allKinds, latchkey.Options{}, func(t *testing.T, p *commonLock) {
		ctx, one := within(t, soon), p.java.on("one")
		hold := mustLock(t, p.lock)
		again := mustLock(t, p.lock, latchkey.As(hold.Share()))
		assert.True(t, one.truth("lock.isLocked", p.f))
		assert.False(t, one.truth("lock.isHeld", p.f))
		assert.Zero(t, one.number("lock.holdCount", p.f))
		assert.InDelta(t, defaultLease.Milliseconds(), one.number("lock.remaining", p.f), 5000)
		mustUnlock(t, again)
		assert.True(t, one.truth("lock.isLocked", p.f))
		mustUnlock(t, hold)
		assert.False(t, one.truth("lock.isLocked", p.f))

		one.do("lock.lock", p.f)
		one.do("lock.lock", p.f)
		found, err := p.lock.Inspect(ctx)
		require.NoError(t, err)
		assert.True(t, found.Locked())
		left := found.TTL
		// Redisson adds up the times of a write lock that is re-entered.
		assert.Less(t, left, 2*defaultLease+time.Second)
		assert.Greater(t, left, defaultLease-5*time.Second)
		assert.Equal(t, []latchkey.Holder{{Owner: ownerOf(t, p.javaOwner("one")), Count: 2, Write: p.kind == "write"}}, p.holders())
		one.do("lock.unlock", p.f)
		assert.Equal(t, 1, p.holders()[0].Count)
		one.do("lock.unlock", p.f)
		found, err = p.lock.Inspect(ctx)
		require.NoError(t, err)
		assert.False(t, found.Locked())
	})
}

func (p *commonLock) holders() []latchkey.Holder {
	p.t.Helper()
	inspection, err := p.lock.Inspect(within(p.t, soon))
	require.NoError(p.t, err)
	return inspection.Holders
}

// javaOwner returns the owner of a thread of Redisson.
func (p *commonLock) javaOwner(name string) string {
	p.t.Helper()
	id := value[string](p.t, p.java.on("main").do("client.id", nil))
	return fmt.Sprintf("%s:%d", id, p.java.on(name).number("lock.threadId", p.f))
}

// Tokens of one name grow, whichever side takes them.
func TestTokens(t *testing.T) {
	t.Parallel()
	eachCommonLock(t, []string{"fenced"}, latchkey.Options{}, func(t *testing.T, p *commonLock) {
		one, last := p.java.on("one"), int64(0)
		for range 5 {
			hold := mustLock(t, p.lock)
			assert.Equal(t, last+1, hold.Token())
			assert.Equal(t, hold.Token(), one.number("lock.token", p.f))
			mustUnlock(t, hold)
			last = one.number("lock.lockToken", p.f)
			assert.Equal(t, hold.Token()+1, last)
			one.do("lock.lock", p.f)
			last++ // Redisson also takes a token for a re-entry
			inspection, err := p.lock.Inspect(within(t, soon))
			require.NoError(t, err)
			assert.Equal(t, last, inspection.Token)
			one.do("lock.unlock", p.f)
			one.do("lock.unlock", p.f)
		}
	})
}
