package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// rivals are clients that want one lock all the time, with one goroutine each, so that every change
// of owners needs a message.
type rivals struct {
	t     *testing.T
	locks []anyLock
	guard atomic.Pointer[overlapDetector] // for the acquisitions that begin now
	turns []atomic.Int64
	all   sync.WaitGroup
}

func (r *rivals) run(ctx context.Context) {
	r.turns = make([]atomic.Int64, len(r.locks))
	r.renew()
	for i, lock := range r.locks {
		r.all.Go(func() {
			for ctx.Err() == nil {
				guard := r.guard.Load()
				hold, err := lock.Lock(ctx)
				if err != nil {
					rest(time.Millisecond)
					continue
				}
				guard.stay(lock.Name(), hold, time.After(rand.N(3*time.Millisecond)))
				_ = hold.Unlock(context.Background()) // a hold that is lost returns an error
				r.turns[i].Add(1)
			}
		})
	}
}

// renew returns what was seen so far. From then on only acquisitions that begin later are watched.
func (r *rivals) renew() *overlapDetector {
	return r.guard.Swap(&overlapDetector{inside: map[string][]*stay{}})
}

// goOn waits until each client has acquired the lock this many times more.
func (r *rivals) goOn(turns int64) {
	r.t.Helper()
	for i := range r.turns {
		want := r.turns[i].Load() + turns
		rig.Eventually(r.t, time.Minute, "everybody goes on", func() error {
			if n := r.turns[i].Load(); n < want {
				return fmt.Errorf("client %d has had %d turns, want %d", i, n, want)
			}
			return nil
		})
	}
}

// beatOf returns the channel on which a client receives its own beats.
func beatOf(client *latchkey.Client) string { return "latchkey:beat:" + client.ID() }

// awaitCounted waits until the server has told a client how many subscribers receive its beat.
func awaitCounted(t *testing.T, tap *rig.Tap, client *latchkey.Client) {
	t.Helper()
	rig.Eventually(t, soon, "the beat is counted", func() error {
		if len(tap.Executed(rig.Both(rig.Named("PUBLISH"), rig.Mentions(beatOf(client))))) == 0 {
			return errors.New("it has not been sent")
		}
		return nil
	})
}

// In a failover without Sentinel commands go to the next master at once. Subscriptions stay with
// the former master, which follows the next one. There they receive all messages, but the next
// master counts no subscribers and takes back what it grants. With their next beat they move to the
// next master, and from then on no client receives a grant that is void.
func TestHandover_failover_that_leaves_subscriptions_behind(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		f := newLockFailover(t, k)
		r := &rivals{t: t}
		var clients []*latchkey.Client
		for range 2 {
			clients = append(clients, f.connect(f.tap()))
			r.locks = append(r.locks, k.open(clients[len(clients)-1], f.name))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer r.all.Wait()
		defer stop()
		r.run(ctx)
		for i, client := range clients {
			awaitCounted(t, f.taps[i], client)
		}
		r.goOn(20)
		before := r.renew()
		f.Swap(0, func(next *rig.Server) {
			for _, tap := range f.taps {
				tap.RedirectCommands(next)
			}
		})
		rig.Eventually(t, soon, "the subscriptions move", func() error {
			for _, client := range clients {
				if f.next.Subscribers(beatOf(client)) == 0 {
					return fmt.Errorf("that of %s is still at the former master", client.ID())
				}
			}
			return nil
		})
		between := r.renew()
		r.goOn(int64(max(rig.Sized(100), 30)))
		for when, guard := range map[string]*overlapDetector{"before": before, "until the subscriptions move": between, "then": r.renew()} {
			grants, overlaps := guard.seen()
			t.Logf("%s: %d grants, %d times two held at once", when, grants, overlaps)
			assert.Zero(t, overlaps, when)
			if guard != between {
				assert.Positive(t, grants)
			}
		}
	}, granting, oneOfEach)
}

// A subscription is counted as soon as it exists, because a failover may follow at once.
func TestHandover_counts_a_subscription_at_once(t *testing.T) {
	t.Parallel()
	notInCluster(t, "a node counts its own subscribers only")
	server, name, tap := rig.Shared(), rig.Name(t), rig.NewTap(t, rig.Shared())
	mustLock(t, connect(t, server).NewLock(name))
	client := connectVia(t, server, tap.Addr(), patient)
	lockInBackground(t.Context(), client.NewLock(name))
	awaitCounted(t, tap, client)
}
