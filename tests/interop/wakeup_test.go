package interop

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

const (
	// wakeCeiling is how long a waiter of ours sleeps here if no message reaches it. A waiter of
	// Redisson sleeps until the lease is over, 30 s.
	wakeCeiling = 29 * time.Second
	// wakeLimit is far below that, and far above what a busy machine needs: the medians are a few
	// milliseconds.
	wakeLimit = 15 * time.Second
)

// wakeRounds returns how often each side wakes the other.
func wakeRounds() int { return max(rig.Sized(10), 2) }

// A release on one side wakes a waiter on the other by a message, not by a poll or the end of a
// lease.
func TestWakeUp(t *testing.T) {
	eachVersion(t, func(t *testing.T, version string) {
		where := here(t)
		stage := where.stage(t, version, latchkey.Options{}, nil)
		for kind, both := range allParticipants {
			t.Run(kind, func(t *testing.T) { stage.measure(t, both, wakeRounds()) })
		}
	})
}

// stage opens a client of each side.
func (p place) stage(t *testing.T, version string, options latchkey.Options, settings fields) stage {
	t.Helper()
	options.Tuning.PollCeiling = wakeCeiling
	return stage{client: p.connect(t, options), java: p.java(t, version, settings), admin: p.admin}
}

// listening waits until somebody listens to a channel whose name contains name.
func listening(t *testing.T, admin *rig.Admin, name string) {
	t.Helper()
	rig.Eventually(t, soon, "a waiter listens", func() error {
		if len(admin.Channels(name)) == 0 {
			return errors.New("nobody")
		}
		return nil
	})
}

// stage has a client of each side, and passes objects from one side to the other.
type stage struct {
	client *latchkey.Client
	java   *java
	admin  *rig.Admin
	prefix string // of every name
}

func (s stage) measure(t *testing.T, both participants, rounds int) {
	t.Helper()
	s.java = s.java.as(t)
	toGo, toJava := make([]time.Duration, rounds), make([]time.Duration, rounds)
	for i := range rounds {
		// A new name for each, because a subscription may linger.
		name := s.prefix + rig.Name(t)
		goSide, javaSide := both(t, s.client, s.java, name)
		toGo[i] = s.pass(t, name, javaSide, goSide)
		name = s.prefix + rig.Name(t)
		goSide, javaSide = both(t, s.client, s.java, name)
		toJava[i] = s.pass(t, name, goSide, javaSide)
	}
	report(t, "Java releases, Go acquires", toGo)
	report(t, "Go releases, Java acquires", toJava)
}

// pass makes one participant hold and release what the other waits for, and returns how long the
// hand-over took.
func (s stage) pass(t *testing.T, name string, from, to participant) time.Duration {
	t.Helper()
	from.hold()
	granted := to.wait()
	listening(t, s.admin, name)
	released := from.release()
	at := rig.Await(t, patience+soon, "the waiter acquires", granted)
	to.leave()
	took := at.Sub(released)
	require.Less(t, took, wakeLimit, "the waiter was not woken")
	return took
}

// report prints median and 99th percentile.
func report(t *testing.T, what string, times []time.Duration) {
	t.Helper()
	slices.Sort(times)
	n := len(times)
	t.Logf("%s: median %v, p99 %v", what, times[n/2].Round(10*time.Microsecond), times[n*99/100].Round(10*time.Microsecond))
}
