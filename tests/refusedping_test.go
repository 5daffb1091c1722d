package tests

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A server may refuse PING: while it cannot save, while a replica has lost its master, and to some
// users. rueidis sends PING behind each UNSUBSCRIBE, and panics if the answer is an error that it
// does not know.

// givesUp waits for each kind of object for a moment, which is longer if the server did not answer
// in it. Somebody else has them all.
func givesUp(ctx context.Context, client *latchkey.Client, name string) error {
	moment := 20 * time.Millisecond
	wait := func() latchkey.WaitOption { return latchkey.Wait(moment) }
	barrier, latch := client.NewBarrier(name+"barrier", 100), client.NewCountDownLatch(name+"latch")
	calls := map[string]func() error{
		"semaphore":      func() error { return client.NewSemaphore(name+"semaphore").Acquire(ctx, wait()) },
		"permits":        func() error { return firstOf(client.NewPermitSemaphore(name+"permits").Acquire(ctx, wait())) },
		"fair semaphore": func() error { return firstOf(client.NewFairSemaphore(name+"fair semaphore").Acquire(ctx, wait())) },
		"latch":          func() error { return latch.Await(ctx, wait()) },
		"barrier":        func() error { return firstOf(barrier.Await(ctx, wait())) },
		"election":       func() error { return firstOf(client.NewElection(name+"election").Campaign(ctx, "", wait())) },
	}
	for _, k := range append(kinds, readKind) {
		calls[k.name] = func() error { return firstOf(k.open(client, name+k.name).Lock(ctx, wait())) }
	}
	for what, call := range calls {
		err := call()
		for errors.Is(err, latchkey.ErrUnavailable) { // a busy machine
			moment *= 2
			err = call()
		}
		if err == nil {
			return fmt.Errorf("%s did not have to wait", what)
		}
	}
	brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	for range client.NewElection(name + "election").Observe(brief) { //nolint:errcheck // it yields
	}
	return nil
}

// hasAll holds what givesUp waits for.
func hasAll(t *testing.T, client *latchkey.Client, name string) {
	t.Helper()
	ctx := within(t, soon)
	for _, k := range append(kinds, readKind) {
		other := k
		if k.sided {
			other = writeKind
		}
		mustLock(t, other.open(client, name+k.name))
	}
	set := func(_ bool, err error) { require.NoError(t, err) }
	set(client.NewSemaphore(name+"semaphore").TrySetPermits(ctx, 1))
	set(client.NewPermitSemaphore(name+"permits").TrySetPermits(ctx, 1))
	set(client.NewFairSemaphore(name+"fair semaphore").TrySetPermits(ctx, 1))
	set(client.NewCountDownLatch(name+"latch").TrySetCount(ctx, 1))
	require.NoError(t, client.NewSemaphore(name+"semaphore").Acquire(ctx))
	require.NoError(t, firstOf(client.NewPermitSemaphore(name+"permits").Acquire(ctx)))
	require.NoError(t, firstOf(client.NewFairSemaphore(name+"fair semaphore").Acquire(ctx)))
	require.NoError(t, firstOf(client.NewElection(name+"election").Campaign(ctx, "")))
}

// waiterProcess has one client in each mode. Each holds a lock, waits for each kind of object,
// gives up, and then tries to get one lock for as long as it takes. Its arguments: server, modes,
// name, and optionally a lock for which it waits all the time.
var waiterProcess = rig.Child("waiter", func(ctx context.Context, args []string) error {
	modes := strings.Split(args[1], "\n")
	gaveUp, ended := make(chan struct{}), make(chan error)
	for _, mode := range modes {
		go func() { ended <- waitInMode(ctx, args, mode, gaveUp) }()
	}
	for range modes {
		select {
		case <-gaveUp:
		case err := <-ended:
			return err
		}
	}
	fmt.Println("gave up")
	for range modes {
		if err := <-ended; err != nil {
			return err
		}
	}
	fmt.Println("goes on")
	return nil
})

func waitInMode(ctx context.Context, args []string, mode string, gaveUp chan<- struct{}) error {
	client, closeAll, err := waiterOf(args[0], mode)
	if err != nil {
		return err
	}
	if len(args) > 3 {
		go func() {
			for firstOf(client.NewMutex(args[3]).Lock(ctx)) != nil {
				time.Sleep(10 * time.Millisecond) // before it asks again
			}
			fmt.Println("got what it waited for")
		}()
	}
	if _, err := client.NewMutex(args[2] + "own " + mode).Lock(ctx); err != nil { // it is renewed
		return err
	}
	if err := givesUp(ctx, client, args[2]); err != nil {
		return err
	}
	gaveUp <- struct{}{}
	for {
		hold, err := client.NewMutex(args[2] + "after").TryLock(ctx)
		if err == nil {
			return errors.Join(hold.Unlock(ctx), closeAll(ctx))
		}
		time.Sleep(10 * time.Millisecond) // before it asks again
	}
}

// waiterOf opens the client of a waiterProcess. mode has words for its settings, and what the
// server answers to PING after the last colon.
func waiterOf(ticket, mode string) (*latchkey.Client, func(context.Context) error, error) {
	server, err := rig.Attach(ticket)
	if err != nil {
		return nil, nil, err
	}
	settings := likeOurs(server.Options(server.Addr()))
	settings.AlwaysRESP2 = strings.Contains(mode, "RESP2")
	if _, refusal, found := strings.Cut(mode, ":"); found {
		refusePing(&settings, refusal)
	}
	options := latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: 300 * time.Millisecond}, Label: latchkey.NoLabel, RetryBudget: soon}
	if strings.Contains(mode, "replicas") {
		options.Lease, options.RetryBudget = 3*time.Second, 2*time.Second
		options.Replicas = latchkey.Replicas{Min: 1, Timeout: time.Second}
	}
	return borrow(settings, options)
}

// refusePing changes the settings of a client so that its data servers refuse PING.
func refusePing(settings *rueidis.ClientOption, refusal string) {
	dial, sentinel := settings.DialCtxFn, settings.Sentinel.MasterSet != ""
	if dial == nil {
		dial = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	settings.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, dialer, config)
		if err != nil || sentinel && slices.Contains(settings.InitAddress, address) {
			return conn, err
		}
		return &refusingConn{Conn: conn, refusal: refusal}, nil
	}
}

// refusingConn is a connection to a server that refuses PING.
type refusingConn struct {
	net.Conn
	refusal string
	rest    []byte
}

func (c *refusingConn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		n, err := c.Conn.Read(b)
		if err != nil {
			return n, err
		}
		refusal := []byte("-" + c.refusal + "\r\n")
		c.rest = bytes.ReplaceAll(b[:n:n], []byte("+PONG\r\n"), refusal)
		c.rest = bytes.ReplaceAll(c.rest, []byte("*2\r\n$4\r\npong\r\n$0\r\n\r\n"), refusal) // of a RESP2 subscriber
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// waitAndGiveUp runs a waiterProcess that has to survive what trouble does. kept is as for the
// process.
func waitAndGiveUp(t *testing.T, server *rig.Server, mode string, trouble func(*rig.Admin) (repair func()), kept ...string) {
	t.Helper()
	name := rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server, latchkey.Options{Lease: time.Minute})
	hasAll(t, client, name)
	after := mustLock(t, client.NewMutex(name+"after"))
	var awaited []*latchkey.Hold
	for _, each := range kept {
		awaited = append(awaited, mustLock(t, client.NewMutex(each)))
	}
	child := waiterProcess.Start(t, append([]string{server.Ticket(), mode, name}, kept...)...)
	child.Line(t, 6*soon, "gave up")
	rig.Eventually(t, soon, "the calls have subscribed", hasSubscribed(admin, name))
	repair := trouble(admin)
	rig.Eventually(t, soon, "nothing is subscribed", func() error { return subscribed(admin, name) })
	repair()
	for _, hold := range awaited {
		mustUnlock(t, hold)
		child.Line(t, soon, "got what it waited for")
	}
	mustUnlock(t, after)
	child.Line(t, soon, "goes on")
	child.Wait(t, soon)
}

func fullDisk(admin *rig.Admin) (repair func()) { return admin.FillDisk() }

// While the server refuses PING, the subscriptions of calls that have given up end, and the client
// goes on afterwards.
func TestRefusedPing_on_a_full_disk(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process)
	for _, mode := range []string{"RESP3", "RESP2"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			waitAndGiveUp(t, rig.Fresh(t), mode, fullDisk)
		})
		t.Run(mode+" while others wait", func(t *testing.T) {
			t.Parallel()
			waitAndGiveUp(t, rig.Fresh(t), mode, fullDisk, "kept")
		})
	}
}

// A replica without a master refuses PING too, and the commands. A borrowed client then uses other
// connections, each for a while.
func TestRefusedPing_by_a_replica(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Process, rig.Topology)
	notInCluster(t, "its nodes refuse for themselves")
	for _, mode := range []string{"RESP3", "RESP2"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := rig.Fresh(t)
			waitAndGiveUp(t, server, mode, func(*rig.Admin) (repair func()) { return losesItsMaster(t, server) }, "kept")
		})
	}
}

// A server, a proxy or the permissions of a user may refuse every PING, in any words.
func TestRefusedPing_always(t *testing.T) {
	t.Parallel()
	var modes []string
	for _, refusal := range []string{
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"NOAUTH Authentication required.",
		"NOPERM User x has no permissions to run the 'ping' command",
		"ERR unknown command 'PING', with args beginning with: ",
		"upstream failure",
	} {
		modes = append(modes, "RESP3:"+refusal)
		if !rig.Shared().Embedded() {
			modes = append(modes, "RESP2:"+refusal)
		}
	}
	waitAndGiveUp(t, rig.Shared(), strings.Join(modes, "\n"), func(*rig.Admin) func() { return func() {} })
}

// A command that replicas of a cluster confirm, such as a renewal, needs a connection of its own.
// Nothing unsubscribes there either.
func TestRefusedPing_replicas_of_a_cluster(t *testing.T) {
	t.Parallel()
	waitAndGiveUp(t, rig.NewCluster(t).Server(), "replicas", fullDisk)
}

// A refused PING proves that the connection works. A client that listens for sharded messages sends
// it there.
func TestRefusedPing_keeps_the_connection(t *testing.T) {
	t.Parallel()
	cluster := rig.NewCluster(t)
	const pollCeiling = 300 * time.Millisecond // a PING every two
	name := rig.Name(t)
	settings := likeOurs(cluster.Server().Options(cluster.Server().Addr()))
	refusePing(&settings, "MISCONF Redis is configured to save RDB snapshots")
	var subscriptions atomic.Int32
	dial := settings.DialCtxFn
	settings.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, dialer, config)
		return subscribingConn{conn, &subscriptions}, err
	}
	client, closeAll, err := borrow(settings, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: pollCeiling}, RetryBudget: soon})
	require.NoError(t, err)
	t.Cleanup(func() { _ = closeAll(within(t, soon)) })
	mustLock(t, connectCluster(t, cluster, latchkey.Options{Lease: time.Minute}).NewRWLock(name).Writer())
	lockInBackground(within(t, soon), client.NewRWLock(name).Writer())
	awaitWaiter(t, rig.NewAdmin(t, cluster.Server()), name)
	rest(2 * pollCeiling) // most likely it has subscribed to all that it needs
	require.NoError(t, rig.InTime(t, func(int) error {
		before := subscriptions.Load()
		rest(5 * 2 * pollCeiling)
		if now := subscriptions.Load(); now > before {
			return fmt.Errorf("subscribed %d times more", now-before)
		}
		return nil
	}))
}

// subscribingConn is a connection that counts how often it is used to subscribe.
type subscribingConn struct {
	net.Conn
	count *atomic.Int32
}

func (c subscribingConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("SUBSCRIBE")) {
		c.count.Add(1)
	}
	return c.Conn.Write(b)
}
