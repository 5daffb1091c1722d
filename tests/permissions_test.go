package tests

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

var documentedUser = regexp.MustCompile(`(?s)redis-cli ACL SETUSER latchkey (.*?)\n` + "```")

// documentedACL returns the arguments of one of the ACL SETUSER lines of docs/reference/keys.md, as
// a shell passes them on: 0 for all names, 1 for what names with hash tags need in addition.
func documentedACL(t *testing.T, which int) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/reference/keys.md")
	require.NoError(t, err)
	lines := documentedUser.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(lines), which)
	return strings.Fields(strings.NewReplacer("'", "", "\\", "").Replace(lines[which][1]))
}

// The documented rights have every command that scripts call, even those that they call rarely. The
// page says who needs INFO in addition; to scripts "reset" is another word.
func TestDocumentedPermissions_for_every_script(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	rights := documentedRights(t, 0) + " +info +reset "
	commands, err := rig.NewAdmin(t, rig.Shared()).Do("COMMAND").ToArray()
	require.NoError(t, err)
	scripts, err := filepath.Glob("../lua/*/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		for _, command := range commands {
			fields, err := command.ToArray()
			require.NoError(t, err)
			name, err := fields[0].ToString()
			require.NoError(t, err)
			if strings.Contains(string(text), "'"+name+"'") && !strings.Contains(rights, "+"+name+" ") {
				assert.Contains(t, rights, "+"+name+"|", "%s calls %s", script, name)
			}
		}
	}
}

// documentedRights are those arguments without the part that creates the user.
func documentedRights(t *testing.T, which int) string {
	t.Helper()
	words := strings.Join(documentedACL(t, which), " ")
	_, rights, found := strings.Cut(words, ">SECRET ")
	require.True(t, found, words)
	return rights
}

// The documented lines create a user that may do everything with its names, with and without hash
// tags.
func TestDocumentedPermissions(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	for name, lines := range map[string]int{"orders:1": 1, "orders:{7}:1": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := rig.Fresh(t)
			admin := rig.NewAdmin(t, server)
			for which := range lines {
				admin.Do(append([]string{"ACL", "SETUSER", "latchkey"}, documentedACL(t, which)...)...)
			}
			if server.Clustered() || server.Watched() {
				t.Skip("what these need besides is tested with the first line")
			}
			renewed := make(chan string, 1000)
			client, other := documentedClient(t, server, renewed), documentedClient(t, server, renewed)
			all := append(kinds, readKind)
			holds := map[string]*latchkey.Hold{} // by the names of the locks
			for _, k := range all {
				lock := k.open(client, name+k.name)
				holds[lock.Name()] = mustLock(t, lock)
				if k.reentrant {
					mustUnlock(t, mustReenter(t, holds[lock.Name()], lock))
				}
			}
			for missing := maps.Clone(holds); len(missing) > 0; {
				delete(missing, rig.Await(t, soon, "all are renewed", renewed))
			}
			for _, k := range all {
				lockThrough(t, admin, client, other, k, holds[name+k.name])
			}
			semaphoresThrough(t, client, name)
			latchThrough(t, client, name+"latch")
			electionThrough(t, admin, client, other, name+"election")
			onceThrough(t, client, other, name+"once")
			completes(t, client.NewBarrier(name+"barrier", 3))
			require.NoError(t, client.NewBarrier(name+"barrier", 3).Reset(t.Context()))
			limiterThrough(t, client, name+"limiter")
			nothingDenied(t, admin)
		})
	}
}

// documentedClient is a client that connects as the documented user. It reports the locks that it
// has renewed.
func documentedClient(t *testing.T, server *rig.Server, renewed chan<- string) *latchkey.Client {
	t.Helper()
	client, err := latchkey.Connect(t.Context(), server.URLAs("latchkey", "SECRET"),
		latchkey.Options{Lease: 5 * time.Second, Tuning: latchkey.Tuning{PollCeiling: 800 * time.Millisecond}, Observer: func(e latchkey.Event) {
			if e.Type == latchkey.EventRenewed {
				renewed <- e.Name
			}
		}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(within(t, soon)) })
	return client
}

// lockThrough goes through the rest of the life of a hold: a message to a waiter of another client
// if the kind sends messages, and the forced end.
func lockThrough(t *testing.T, admin *rig.Admin, client, other *latchkey.Client, k kind, hold *latchkey.Hold) {
	t.Helper()
	name := hold.Name()
	lock := k.open(client, name)
	if k.messages && k.name != readKind.name {
		waiter := lockInBackground(within(t, soon), k.open(other, name))
		awaitWaiter(t, admin, name)
		mustUnlock(t, hold)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		hold = next.hold
	}
	_, err := lock.Inspect(t.Context())
	require.NoError(t, err)
	forced, err := lock.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	require.Error(t, hold.Unlock(context.Background()))
	if k.name != readKind.name {
		mustUnlock(t, mustLock(t, lock, latchkey.AtLeast(time.Millisecond), latchkey.Lease(time.Minute)))
		mustUnlock(t, mustLock(t, lock, latchkey.AtLeast(time.Minute)))
		forced, err = lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
	}
}

func semaphoresThrough(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	ctx := within(t, soon)
	s := client.NewSemaphore(name + "s")
	_, err := s.TrySetPermits(ctx, 2)
	require.NoError(t, err)
	require.NoError(t, s.AcquireN(ctx, 2))
	_ = refused(t, func(wait latchkey.WaitOption) error { return s.Acquire(ctx, wait) })
	require.NoError(t, s.ReleaseN(ctx, 2))
	require.NoError(t, s.SetPermits(ctx, 3))
	_, err = s.Drain(ctx)
	require.NoError(t, err)
	_, err = s.SetTTL(ctx, time.Minute)
	require.NoError(t, err)
	_, err = s.Delete(ctx)
	require.NoError(t, err)

	fairPermits(ctx, t, client, name+"f")
	p := client.NewPermitSemaphore(name + "p")
	_, err = p.TrySetPermits(ctx, 2)
	require.NoError(t, err)
	permit, err := p.Acquire(ctx)
	require.NoError(t, err)
	forever, err := p.Acquire(ctx, latchkey.Lease(latchkey.NoExpiry))
	require.NoError(t, err)
	_ = refused(t, func(wait latchkey.WaitOption) error { return firstOf(p.Acquire(ctx, wait)) })
	require.NoError(t, p.SetLease(ctx, forever.ID(), time.Minute))
	require.NoError(t, permit.Release(ctx))
	require.NoError(t, forever.Release(ctx))
	_, err = statsOf(ctx, p)
	require.NoError(t, err)
	_, err = p.Delete(ctx)
	require.NoError(t, err)
}

func latchThrough(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	ctx := within(t, soon)
	l := client.NewCountDownLatch(name)
	_, err := l.TrySetCount(ctx, 2, latchkey.TTL(time.Minute))
	require.NoError(t, err)
	opened := make(chan error, 1)
	go func() { opened <- l.Await(ctx) }()
	_, err = l.CountDownAs(ctx, "me")
	require.NoError(t, err)
	_, err = l.CountDown(ctx)
	require.NoError(t, err)
	require.NoError(t, rig.Await(t, soon, "the latch", opened))
	_, err = l.Delete(ctx)
	require.NoError(t, err)
}

func electionThrough(t *testing.T, admin *rig.Admin, client, other *latchkey.Client, name string) {
	t.Helper()
	l := mustLead(t, client.NewElection(name), "a")
	watched := leaders(t.Context(), other.NewElection(name))
	sees(t, watched, "a")
	require.NoError(t, l.Proclaim(t.Context(), "b"))
	sees(t, watched, "b")
	next := campaignInBackground(within(t, soon), other.NewElection(name), "c")
	electionQueued(t, admin, name, 1)
	mustResign(t, l)
	sees(t, watched, "c")
	got := rig.Await(t, soon, "the next leader", next)
	require.NoError(t, got.err)
	mustResign(t, got.leadership)
	sees(t, watched, "")
}

// A walk needs SCAN in addition to the rights of docs/reference/keys.md, and its error says so. A
// look at one object does not.
func TestMinimalPermissionsOfObjects(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	admin, client := rig.NewAdmin(t, server), narrow(t, server, latchkey.Options{})
	manyKinds(t, client, "orders:")
	for _, err := range client.Objects(t.Context(), "orders:*") {
		hasCode(t, err, "NOPERM")
	}
	_, err := client.Inspect(t.Context(), "orders:sem")
	require.NoError(t, err)

	admin.Do("ACL", "SETUSER", "narrow", "+scan")
	admin.Do("ACL", "LOG", "RESET")
	require.Len(t, allObjects(t, client, "orders:*"), len(kinds)+4)
	_, err = client.Waiters(t.Context(), "orders:Lock")
	require.NoError(t, err)
	nothingDenied(t, admin)

	admin.Do("SET", "secret", "1")
	for _, err := range client.Objects(t.Context(), "secret*") {
		hasCode(t, err, "NOPERM")
	}
}

// A user that may use only the keys that Redisson needs is refused, and Check says so.
func TestMinimalPermissionsWithoutTheQueue(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t)
	rights := strings.ReplaceAll(documentedRights(t, 0), "~latchkey_queue:", "~no_queue:")
	require.NotEqual(t, documentedRights(t, 0), rights)
	grant(t, server, "narrow", rights)
	client, err := latchkey.Connect(t.Context(), server.URLAs("narrow", "secret"), latchkey.Options{KeyPrefix: "orders:"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(within(t, soon)) })
	err = client.Check(within(t, soon))
	hasCode(t, err, "NOPERM")
	require.ErrorContains(t, err, "unlock")
	hold := mustLock(t, client.NewLock("1"))
	hasCode(t, hold.Unlock(t.Context()), "NOPERM")
}

// fairPermits calls everything that a fair semaphore can do.
func fairPermits(ctx context.Context, t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	s := client.NewFairSemaphore(name)
	_, err := s.TrySetPermits(ctx, 2)
	require.NoError(t, err)
	held, err := s.AcquireN(ctx, 2)
	require.NoError(t, err)
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	_ = refused(t, func(wait latchkey.WaitOption) error { return firstOf(s.Acquire(ctx, wait)) })
	waiting := make(chan error, 1)
	go func() { waiting <- s.Do(ctx, func(context.Context) error { return nil }) }()
	require.Eventually(t, func() bool {
		list, err := s.Waiters(ctx)
		return len(list) > 0 || err != nil
	}, soon, time.Millisecond)
	for _, p := range held {
		require.NoError(t, p.Release(ctx))
	}
	require.NoError(t, rig.Await(t, soon, "the waiter", waiting))
	_, err = statsOf(ctx, s)
	require.NoError(t, err)
	_, err = s.Delete(ctx)
	require.NoError(t, err)
}

// onceThrough uses everything that a Once has.
func onceThrough(t *testing.T, client, other *latchkey.Client, name string) {
	t.Helper()
	o := client.NewOnce(name, time.Hour)
	require.Error(t, firstOf(o.Do(t.Context(), func(context.Context) ([]byte, error) { return nil, context.Canceled })))
	run := runInBackground(t, client.NewOnce(name, latchkey.Forever), "a result")
	hold := o.HoldFrom(run.runs(t))
	require.NoError(t, hold.Extend(t.Context(), time.Hour))
	waiting := runInBackground(t, other.NewOnce(name, time.Hour), "another")
	rig.Eventually(t, soon, "it waits", func() error {
		if other.Waiting()[latchkey.KindOnce] == 0 {
			return context.DeadlineExceeded
		}
		return nil
	})
	run.ends(t, nil)
	require.Equal(t, onceResult{"a result", nil}, rig.Await(t, soon, "the result", waiting.result))
	require.NoError(t, firstOf(o.Inspect(t.Context())))
	_, done, err := o.Result(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, o.Forget(t.Context()))
}
