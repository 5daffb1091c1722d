package tests

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// brief keeps a client from retrying for long what cannot succeed.
var brief = latchkey.Options{RetryBudget: 1500 * time.Millisecond}

// hasCode checks that err wraps a server error with the given code.
func hasCode(t *testing.T, err error, code string) {
	t.Helper()
	var reply *rueidis.RedisError
	if assert.ErrorAs(t, err, &reply) {
		assert.Contains(t, reply.Error(), code)
	}
}

func TestServerDownAtTheStart(t *testing.T) {
	rig.Need(t, rig.Process)
	server := rig.Fresh(t)
	server.Kill(t)
	_, err := latchkey.Connect(within(t, soon), server.URL(), latchkey.Options{})
	var dial *net.OpError
	assert.ErrorAs(t, err, &dial)
	assert.ErrorIs(t, err, latchkey.ErrUnavailable)
	assert.NotErrorIs(t, err, context.DeadlineExceeded, "nobody's context ended")
}

// The server accepts connections and never replies.
func TestServerSilentAtTheStart(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	link := rig.NewLink(t, server)
	link.Silence()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := latchkey.Connect(ctx, server.URLVia(link.Addr()), routed(server, link.Addr(), latchkey.Options{}))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(start), 300*time.Millisecond+leeway)
	link.Cut()
}

// The server dies while a waiter waits, and stays down until the waiter's time is over.
func TestServerDownWhileWaiting(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server := rig.Fresh(t)
		admin := rig.NewAdmin(t, server)
		mustLock(t, k.open(connect(t, server), "down"))
		const wait = 5 * time.Second // until then it is known to wait, and the server is killed
		start := time.Now()
		waiter := lockInBackground(within(t, soon), k.open(connect(t, server, brief), "down"), latchkey.Wait(wait))
		if k.messages {
			awaitWaiter(t, admin, "down")
		}
		server.Kill(t)
		got := rig.Await(t, soon, "the waiter", waiter)
		requireUnavailable(t, got.err)
		assert.NotErrorIs(t, got.err, context.DeadlineExceeded, "the caller's context goes on")
		var network *net.OpError
		if !strings.Contains(got.err.Error(), "there is no connection") { // a slow machine is not refused in time
			assert.ErrorAs(t, got.err, &network, "the network error is in the chain")
		}
		tookAbout(t, wait, got.at.Sub(start))
	})
}

// The server restarts while one client waits and another holds the lock. It has forgotten the lock:
// the waiter gets it, and the holder learns of the loss.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server := rig.Fresh(t)
		admin := rig.NewAdmin(t, server)
		hold := mustLock(t, k.open(connect(t, server, latchkey.Options{Lease: 3 * time.Second}), "restarted"))
		waiter := lockInBackground(within(t, soon), k.open(connect(t, server, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: time.Second}}), "restarted"))
		if k.messages {
			awaitWaiter(t, admin, "restarted")
		}
		server.Kill(t)
		server.Restart(t)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		rig.Await(t, soon, "the loss", hold.Lost())
		mustUnlock(t, next.hold)
	})
}

// Out of memory: an acquisition gets the error at once; renewal and release work.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 9 * time.Second
		server := rig.Fresh(t)
		admin := rig.NewAdmin(t, server)
		client := connect(t, server, latchkey.Options{Lease: lease})
		lock := k.open(client, "held")
		hold := mustLock(t, lock)
		inner := enter(t, k, lock, hold)
		mustUnlock(t, mustLock(t, k.open(client, "other")))
		admin.Do("CONFIG", "SET", "maxmemory", "1")

		start := time.Now()
		_, err := k.open(client, "other").Lock(within(t, time.Minute))
		hasCode(t, err, "OOM")
		assert.NotErrorIs(t, err, latchkey.ErrNotAcquired, "it is no contention")
		assert.NotErrorIs(t, err, latchkey.ErrUnavailable, "it answers")
		assert.Less(t, time.Since(start), soon, "and no use to wait")

		renewedAgain(t, lease, hold)
		if inner != nil {
			mustUnlock(t, inner)
		}
		assert.NoError(t, hold.Err())
		mustUnlock(t, hold)
		assert.NoError(t, free(admin, "held")())
	})
}

// enter re-enters a hold. It returns nil for a kind that is not reentrant.
func enter(t *testing.T, k kind, lock anyLock, hold *latchkey.Hold) *latchkey.Hold {
	t.Helper()
	if !k.reentrant {
		return nil
	}
	inner, err := lock.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	return inner
}

// grant creates a user with these rights and those that docs/reference/keys.md adds for a cluster
// or for Sentinel.
func grant(t *testing.T, server *rig.Server, user, rights string) {
	t.Helper()
	words := append([]string{"ACL", "SETUSER", user, "reset", "resetchannels", "on", ">secret"}, strings.Fields(rights)...)
	switch {
	case server.Clustered():
		words = append(words, strings.Fields("+cluster|slots +cluster|shards +pubsub|shardnumsub +spublish +ssubscribe")...)
	case server.Watched():
		words = append(words, "+role")
	}
	rig.NewAdmin(t, server).Do(words...)
}

// narrow connects as a user that has only the rights of docs/reference/keys.md, for names that
// begin with "orders:".
func narrow(t *testing.T, server *rig.Server, options latchkey.Options) *latchkey.Client {
	t.Helper()
	grant(t, server, "narrow", documentedRights(t, 0))
	options.Logger = slog.New(slog.DiscardHandler)
	client, err := latchkey.Connect(t.Context(), server.URLAs("narrow", "secret"), options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(within(t, soon)) })
	return client
}

// nothingDenied fails the test if the server has refused a command, a key or a channel.
// CLIENT SETINFO does not count: the client library sends it when it connects, whether the
// server knows it or not.
func nothingDenied(t *testing.T, admin *rig.Admin) {
	t.Helper()
	entries, err := admin.Do("ACL", "LOG").ToArray()
	require.NoError(t, err)
	for _, entry := range entries {
		fields, err := entry.ToMap()
		require.NoError(t, err)
		object := fields["object"]
		refused, err := object.ToString()
		require.NoError(t, err)
		assert.Contains(t, []string{"client|setinfo", "client"}, refused, "%v", fields) // Redis 6.2 omits the rest
	}
}

// The documented rights are enough for a wait, a message, a renewal, a re-entry and a forced
// release. They are also needed.
func TestMinimalPermissions(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server := rig.Fresh(t)
		options := latchkey.Options{Lease: 6 * time.Second, Tuning: latchkey.Tuning{PollCeiling: 900 * time.Millisecond}}
		client := narrow(t, server, options)
		lock, other := k.open(client, "orders:1"), k.open(narrow(t, server, options), "orders:1")

		hold := mustLock(t, lock)
		if inner := enter(t, k, lock, hold); inner != nil {
			mustUnlock(t, inner)
		}
		renewedAgain(t, options.Lease, hold)
		waiter := lockInBackground(within(t, soon), other)
		if k.messages {
			awaitWaiter(t, rig.NewAdmin(t, server), "orders:1")
		}
		mustUnlock(t, hold)
		got := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, got.err)
		forced, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		assert.True(t, forced)

		start := time.Now()
		_, err = k.open(client, "secret").Lock(within(t, time.Minute))
		hasCode(t, err, "NOPERM")
		assert.Less(t, time.Since(start), soon, "it is no use to wait")
	})
}

// A user may not publish: a release still succeeds, and waiters poll.
func TestNoChannels(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server := rig.Fresh(t)
		admin := rig.NewAdmin(t, server)
		admin.Do("ACL", "SETUSER", "default", "resetchannels")
		hold := mustLock(t, k.open(connect(t, server, polling), "mute"))
		waiter := lockInBackground(within(t, soon), k.open(connect(t, server, polling), "mute"))
		rest(100 * time.Millisecond) // the waiter's subscription has been refused by then
		released := time.Now()
		mustUnlock(t, hold)
		next := rig.Await(t, soon, "the waiter", waiter)
		require.NoError(t, next.err)
		assert.Less(t, next.at.Sub(released), pollCeiling+leeway)
		mustUnlock(t, next.hold)
		assert.NoError(t, free(admin, "mute")())
	})
}

// The server is read-only, loading, or temporarily unable for another reason: calls are retried,
// and the error is returned when the budget is spent.
func TestPassingTrouble(t *testing.T) {
	t.Parallel()
	for i, text := range []string{
		"READONLY You can't write against a read only replica.",
		"LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down",
		"BUSY Redis is busy running a script.",
		"NOREPLICAS Not enough good replicas to write.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"CLUSTERDOWN The cluster is down",
		"TRYAGAIN Multiple keys request during rehashing of slot",
	} {
		code, _, _ := strings.Cut(text, " ")
		oneKind := func(k kind) bool { return i == 0 || k.name == lockKind.name } // the same path for each code
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			eachKind(t, func(t *testing.T, k kind) {
				t.Parallel()
				server, name := rig.Shared(), rig.Name(t)
				tap := rig.NewTap(t, server)
				lock := k.open(connectVia(t, server, tap.Addr(), brief), name)
				heal := tap.Refuse(rig.Mentions(name), text)

				rig.Eventually(t, soon, "the error of the server", func() error {
					start := time.Now()
					_, err := lock.TryLock(t.Context())
					require.Error(t, err)
					assert.Less(t, time.Since(start), brief.RetryBudget+leeway)
					var reply *rueidis.RedisError
					if !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), code) {
						return err // the last reply came too late, as on a busy machine
					}
					return nil
				})

				patient := k.open(connectVia(t, server, tap.Addr(), persistent), name)
				tap.Forget()
				waiter := lockInBackground(within(t, soon), patient)
				met := func() error {
					if len(mentioning(tap, name)) == 0 {
						return errors.New("nothing was sent yet")
					}
					return nil
				}
				rig.Eventually(t, soon, "the waiter meets the trouble", met)
				heal()
				got := rig.Await(t, soon, "the trouble passes", waiter)
				require.NoError(t, got.err)

				heal = tap.Refuse(rig.Mentions(name), text)
				tap.Forget()
				released := make(chan error, 1)
				go func() { released <- got.hold.Unlock(t.Context()) }()
				rig.Eventually(t, soon, "the release meets it too", met)
				heal()
				assert.NoError(t, rig.Await(t, soon, "the release, which is repeated", released))
				assert.NoError(t, free(rig.NewAdmin(t, server), name)())
			}, oneKind)
		})
	}
}

// The server has really become a replica.
func TestReadOnlyReplica(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings, rig.Process)
	notInCluster(t, "a replica of a cluster sends clients to its master")
	master, server := rig.Fresh(t), rig.Fresh(t)
	admin, client, later := rig.NewAdmin(t, server), connect(t, server, brief), connect(t, server, persistent)
	host, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	admin.Do("REPLICAOF", host, port)
	for _, k := range kinds {
		lock := k.open(client, k.name)
		rig.Eventually(t, soon, "the refusal of a replica", func() error {
			_, err := lock.TryLock(t.Context()) // while the server loads the data, it may not reply in time
			var reply *rueidis.RedisError
			if errors.As(err, &reply) && strings.Contains(reply.Error(), "READONLY") {
				return nil
			}
			return errors.Join(errors.New("not read-only yet"), err)
		})
	}
	admin.Do("REPLICAOF", "NO", "ONE")
	for _, k := range kinds {
		assert.NoError(t, k.open(later, k.name).Do(within(t, soon), func(context.Context) error { return nil }), k.name)
	}
}

// A long script blocks the server: the lock is acquired when the script ends.
func TestBusyServer(t *testing.T) {
	rig.Need(t, rig.Settings)
	server := rig.Fresh(t, "--lua-time-limit", "50") // the name that all versions accept
	admin, blocked := rig.NewAdmin(t, server), server.Raw(t)
	lock := connect(t, server).NewLock("busy")
	done := make(chan error, 1)
	go func() {
		done <- blocked.Do(context.Background(), blocked.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
	}()
	rig.Eventually(t, soon, "the server is busy", func() error {
		if err := ping(t.Context(), server); err == nil || !strings.Contains(err.Error(), "BUSY") {
			return errors.New("not yet")
		}
		return nil
	})
	waiter := lockInBackground(within(t, soon), lock)
	rest(200 * time.Millisecond)
	admin.Do("SCRIPT", "KILL")
	got := rig.Await(t, soon, "the lock", waiter)
	require.NoError(t, got.err)
	mustUnlock(t, got.hold)
	rig.Await(t, soon, "the script ends", done)
}

func ping(ctx context.Context, server *rig.Server) error {
	client, err := server.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(ctx, client.B().Get().Key("x").Build()).Error()
}

// Connections are killed again and again while locks are used.
func TestKilledConnections(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Settings)
	passes := max(rig.Sized(50), 20)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		server := rig.Fresh(t)
		section := rig.NewSection(rig.Shared().Raw(t), rig.Name(t))
		c := contention{lock: k.open(connect(t, server, persistent), "killed"), section: section, workers: 4, passes: passes}
		ctx, stop := context.WithCancel(within(t, time.Minute))
		killed := make(chan int, 1)
		go func() { killed <- killOften(ctx, server, server.Raw(t)) }()
		err := c.run(ctx)
		stop()
		t.Logf("connections were killed %d times", rig.Await(t, soon, "the killer", killed))
		if !assert.NoError(t, err) {
			admin := rig.NewAdmin(t, server)
			t.Fatal("stored:", admin.Dump("killed"), "subscribed:", admin.Channels("killed"))
		}
		section.Verify(t, int64(4*passes))
		rig.Eventually(t, undoBudget, "nothing is held", free(rig.NewAdmin(t, server), "killed"))
	})
}

// killOften kills all connections but its own, at most a hundred times, because a busy machine that
// is slow to connect must finish as well. Between two rounds it allows the time to connect, and a
// little more. It returns when ctx ends, and ignores the replies of the server: a goroutine that
// fails a test does not return, so nothing could wait for it.
func killOften(ctx context.Context, server *rig.Server, killer rueidis.Client) (times int) {
	for ; times < 100; times++ {
		select {
		case <-ctx.Done():
			return times
		case <-time.After(20 * time.Millisecond):
			_ = ping(ctx, server)
			for _, kind := range []string{"normal", "pubsub"} {
				_ = killer.Do(ctx, killer.B().Arbitrary("CLIENT", "KILL", "TYPE", kind).Build()).Error()
			}
		}
	}
	return times
}
