package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// takingTurns acquires something with a lease, 0 for the usual one, and returns its release.
type takingTurns func(ctx context.Context, lease time.Duration) (release func(context.Context) error, err error)

// inTurns are the objects whose clients take turns: see handedOver.
func inTurns() map[string]func(c *latchkey.Client, name string) takingTurns {
	all := map[string]func(c *latchkey.Client, name string) takingTurns{
		"Election": func(c *latchkey.Client, name string) takingTurns {
			e := c.NewElection(name)
			return func(ctx context.Context, lease time.Duration) (func(context.Context) error, error) {
				l, err := e.Campaign(ctx, "me", leaseOf(lease)...)
				if err != nil {
					return nil, err
				}
				return l.Resign, nil
			}
		},
	}
	for _, k := range kinds {
		if handedOver(k) {
			all[k.name] = func(c *latchkey.Client, name string) takingTurns {
				lock := k.open(c, name)
				return func(ctx context.Context, lease time.Duration) (func(context.Context) error, error) {
					hold, err := lock.Lock(ctx, leaseOf(lease)...)
					if err != nil {
						return nil, err
					}
					return hold.Unlock, nil
				}
			}
		}
	}
	return all
}

func leaseOf(d time.Duration) []latchkey.LockOption {
	if d == 0 {
		return nil
	}
	return []latchkey.LockOption{latchkey.Lease(d)}
}

// The first waiter of a client gives up. The one behind it keeps the place, whatever lease each of
// them asks for, and comes before a client that came later.
func TestTurn_stays_with_the_client_whose_first_waiter_gives_up(t *testing.T) {
	t.Parallel()
	for what, leases := range map[string][2]time.Duration{
		"the usual leases": {}, "a longer lease": {0, time.Hour},
		"a shorter lease": {0, 20 * time.Second}, "then a renewed lease": {20 * time.Second, 0},
	} {
		for kind, open := range inTurns() {
			t.Run(kind+", "+what, func(t *testing.T) {
				t.Parallel()
				name, admin := rig.Name(t), rig.NewAdmin(t, rig.Shared())
				a, b := connect(t, rig.Shared(), neverStale), connect(t, rig.Shared(), neverStale)
				release, err := open(connect(t, rig.Shared()), name)(t.Context(), 0)
				require.NoError(t, err)
				leaving, leave := context.WithCancel(t.Context())
				defer leave()
				gone, next := make(chan error, 1), make(chan string, 2)
				go func() { _, err := open(a, name)(leaving, leases[0]); gone <- err }()
				queued(t, admin, name, 1)
				take := func(who string, c *latchkey.Client, lease time.Duration) {
					release, err := open(c, name)(within(t, time.Minute), lease)
					if assert.NoError(t, err, who) {
						next <- who
						assert.NoError(t, release(context.Background()))
					}
				}
				go take("the second of its client", a, leases[1])
				waitTogether(t, a, 2)
				go take("a client that came later", b, 0)
				queued(t, admin, name, 2)
				leave()
				require.ErrorIs(t, rig.Await(t, soon, "the first gives up", gone), context.Canceled)
				require.NoError(t, release(t.Context()))
				assert.Equal(t, "the second of its client", rig.Await(t, soon, "the next", next))
				rig.Await(t, soon, "the last", next)
				rig.Eventually(t, soon, "all is free", free(admin, name))
			})
		}
	}
}

// The place was taken for a longer lease than the one that the next waiter asks for. Its hold ends
// after its own lease, and the lock goes to the next client soon after that.
func TestTurn_that_stays_ends_with_the_lease_of_its_hold(t *testing.T) {
	t.Parallel()
	for kind, open := range inTurns() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name, admin := rig.Name(t), rig.NewAdmin(t, rig.Shared())
			a, b := connect(t, rig.Shared(), neverStale), connect(t, rig.Shared(), neverStale)
			release, err := open(connect(t, rig.Shared()), name)(t.Context(), 0)
			require.NoError(t, err)
			leaving, leave := context.WithCancel(t.Context())
			defer leave()
			gone, next := make(chan error, 2), make(chan error, 1)
			go func() { _, err := open(a, name)(leaving, time.Hour); gone <- err }()
			queued(t, admin, name, 1)
			short := make(chan error, 1)
			go func() { _, err := open(a, name)(within(t, time.Minute), time.Second); short <- err }()
			waitTogether(t, a, 2)
			leave()
			rig.Await(t, soon, "the first gives up", gone)
			require.NoError(t, release(t.Context()))
			require.NoError(t, rig.Await(t, soon, "a hold that nobody releases", short))
			go func() {
				release, err := open(b, name)(within(t, time.Minute), 0)
				if err == nil {
					err = release(context.Background())
				}
				next <- err
			}()
			require.NoError(t, rig.Await(t, soon, "the next client", next))
			rig.Eventually(t, soon, "all is free", free(admin, name))
		})
	}
}

// waitTogether waits until n calls of a client wait.
func waitTogether(t *testing.T, client *latchkey.Client, n int) {
	t.Helper()
	rig.Eventually(t, soon, "calls wait", func() error {
		all := 0
		for _, some := range client.Waiting() {
			all += some
		}
		if all != n {
			return fmt.Errorf("%d, not %d", all, n)
		}
		return nil
	})
}
