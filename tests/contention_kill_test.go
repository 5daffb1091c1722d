package tests

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// entrance notices in any process that two are inside at once, also when some are killed in
// there: whoever enters writes down whom it finds. What it leaves behind ends when its hold
// would have, so that a process that was not run for longer is not taken for a fault.
type entrance struct {
	raw       rueidis.Client
	name, who string
}

func (e entrance) key() string   { return "guard:{" + e.name + "}" }
func (e entrance) found() string { return "found:{" + e.name + "}" }

func (e entrance) pass(ctx context.Context, valid time.Duration) error {
	b := e.raw.B
	before, err := e.raw.Do(ctx, b().Set().Key(e.key()).Value(e.who).Get().Px(max(valid, time.Millisecond)).Build()).ToString()
	switch {
	case rueidis.IsRedisNil(err):
	case err != nil:
		return err
	default:
		if err := e.raw.Do(ctx, b().Rpush().Key(e.found()).Element(before).Build()).Error(); err != nil {
			return err
		}
	}
	return e.raw.Do(ctx, b().Del().Key(e.key()).Build()).Error()
}

// verify fails if somebody was found inside who was not killed there.
func (e entrance) verify(t *testing.T, killed []string) {
	t.Helper()
	found, err := e.raw.Do(t.Context(), e.raw.B().Lrange().Key(e.found()).Start(0).Stop(-1).Build()).AsStrSlice()
	require.NoError(t, err)
	found = slices.DeleteFunc(found, func(who string) bool { return slices.Contains(killed, who) })
	assert.Empty(t, found, "these were inside when somebody else entered")
}

// entering passes through the entrance in what it acquires.
func entering(inner acquire, e entrance) acquire {
	return func(ctx context.Context) (taken, error) {
		got, err := inner(ctx)
		if err != nil {
			return got, err
		}
		if err := e.pass(ctx, got.valid); err != nil {
			return got, errors.Join(err, got.release(ctx))
		}
		return got, nil
	}
}

var rusherOptions = latchkey.Options{Lease: crashLease, StaleWaiterTimeout: crashLease}

// rusher is a process in which two goroutines want a lock all the time. Its arguments: kind
// of lock, name, server, the address by which it is reached, a name for itself.
var rusher = rig.Child("rusher", func(ctx context.Context, args []string) error {
	k, err := kindNamed(args[0])
	if err != nil {
		return err
	}
	server, err := rig.Attach(args[2])
	if err != nil {
		return err
	}
	raw, err := server.Client()
	if err != nil {
		return err
	}
	client, _, err := dial(server, args[3], rusherOptions)
	if err != nil {
		return err
	}
	enter := entering(locking(k.open(client, args[1])), entrance{raw, args[1], args[4]})
	passed := sync.OnceFunc(func() { fmt.Println("passed") })
	rush := func() error {
		for {
			got, err := enter(ctx)
			if err == nil {
				err = got.release(ctx)
			}
			if err != nil {
				return err
			}
			passed()
		}
	}
	go func() { _ = rush() }()
	return rush()
})

// survivors are goroutines of two clients in this process, which go on when others are
// killed.
type survivors struct {
	t        *testing.T
	kind     kind
	server   *rig.Server
	name     string
	entrance entrance
	contest
	ended  <-chan error
	late   func() time.Duration
	lost   atomic.Int32 // holds that a late machine did not renew in time
	killed []string
	gaps   []time.Duration // until the survivors went on
}

func newSurvivors(t *testing.T, k kind) *survivors {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	s := &survivors{t: t, kind: k, server: server, name: name, entrance: entrance{server.Raw(t), name, "a survivor"}}
	for i := range 2 {
		enter := entering(locking(k.open(connect(t, server, rusherOptions), name)), s.entrance)
		s.parties = append(s.parties, party{name: fmt.Sprint("survivor ", i), goroutines: 2, acquire: s.countLost(enter)})
	}
	s.late = rig.WatchLateness()
	s.passes, s.dump = math.MaxInt64, dumpOf(t, []*rig.Server{server}, name)
	s.ended = s.begin(t.Context())
	return s
}

// countLost goes on after a hold that was lost.
func (s *survivors) countLost(inner acquire) acquire {
	return func(ctx context.Context) (taken, error) {
		got, err := inner(ctx)
		release := got.release
		got.release = func(ctx context.Context) error {
			err := release(ctx)
			if errors.Is(err, latchkey.ErrLost) {
				s.lost.Add(1)
				return nil
			}
			return err
		}
		return got, err
	}
}

// newcomer starts a process that contends.
func (s *survivors) newcomer(addr string) (child *rig.ChildProcess, who string) {
	s.t.Helper()
	who = strconv.Itoa(rand.Int())
	return rusher.Start(s.t, s.kind.name, s.name, s.server.Ticket(), addr, who), who
}

// kill kills a process and waits until the survivors have gone on.
func (s *survivors) kill(child *rig.ChildProcess, who string) {
	s.t.Helper()
	child.Kill()
	killed, passes := time.Now(), s.total.Load()
	s.killed = append(s.killed, who)
	rig.Eventually(s.t, soon, "the others go on", func() error {
		if n := s.total.Load() - passes; n < 8 { // each of the four, and as many to be sure
			return fmt.Errorf("%d passes since", n)
		}
		return nil
	})
	s.gaps = append(s.gaps, time.Since(killed))
}

// finish ends the contest, checks it, and prints after which times the survivors went on.
func (s *survivors) finish() {
	s.t.Helper()
	s.finished.Store(true)
	require.NoError(s.t, rig.Await(s.t, soon, "the survivors end", s.ended))
	assert.Zero(s.t, s.overlaps.Load())
	assert.Zero(s.t, s.backward.Load(), "a token was not larger than the one before")
	s.entrance.verify(s.t, s.killed)
	slices.Sort(s.gaps)
	s.t.Logf("%d kills; the others went on after %v (median), %v (at most); the longest wait %v",
		len(s.gaps), s.gaps[len(s.gaps)/2].Round(time.Millisecond), s.gaps[len(s.gaps)-1].Round(time.Millisecond),
		s.tally.Longest().Round(time.Millisecond))
	assert.Less(s.t, s.gaps[len(s.gaps)-1], s.limit())
	late := s.late()
	s.t.Logf("%d holds were lost, on a machine that was %v late at most", s.lost.Load(), late.Round(time.Millisecond))
	assert.False(s.t, s.lost.Load() > 0 && late < crashLease/5, "holds were lost on a machine that had time to renew them")
}

// limit is one lease, and for a fair lock a period for those who waited.
func (s *survivors) limit() time.Duration {
	if s.kind.queued {
		return 2*crashLease + leeway
	}
	return crashLease + leeway
}

// Processes that contend are killed at random instants: the others go on after one lease.
func TestKilledContender_at_random_instants(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := newSurvivors(t, k)
		for range rig.Sized(10) {
			child, who := s.newcomer(s.server.Addr())
			child.Line(t, soon, "passed")
			rest(rand.N(20 * time.Millisecond))
			s.kill(child, who)
		}
		s.finish()
	}, messages)
}

// They are killed before each of their first commands about the lock has reached the
// server, and after it was executed, before they know: asks, releases and what is between.
func TestKilledContender_at_each_command(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := newSurvivors(t, k)
		for n := range max(rig.Sized(8), 2) {
			for _, hold := range []func(*rig.Tap, int, rig.Match) *rig.Held{(*rig.Tap).HoldNthCommand, (*rig.Tap).HoldNthReply} {
				tap := rig.NewTap(t, s.server)
				held := hold(tap, n+1, rig.Mentions(s.name))
				child, who := s.newcomer(tap.Addr())
				rig.Await(t, soon, "the command", held.Arrived)
				s.kill(child, who)
				tap.Stop()
			}
		}
		s.finish()
	}, messages)
}
