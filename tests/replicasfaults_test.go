package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// taker is one way to acquire something that needs confirmation. It returns a function that gives
// it back, and the key and value that the replica must have.
type taker struct {
	name string
	take func(ctx context.Context, client *latchkey.Client, name string) (giveBack func() error, key, want string, err error)
}

func giving(h *latchkey.Hold, err error) (func() error, error) {
	return func() error { return h.Unlock(context.Background()) }, err
}

var takers = func() (all []taker) {
	for _, k := range append(kinds, readKind) {
		all = append(all, taker{k.name, func(ctx context.Context, c *latchkey.Client, name string) (func() error, string, string, error) {
			give, err := giving(k.open(c, name).Lock(ctx))
			return give, name, "", err
		}})
	}
	return append(all,
		taker{"reentry", func(ctx context.Context, c *latchkey.Client, name string) (func() error, string, string, error) {
			outer, err := c.NewLock(name).Lock(ctx)
			if err != nil {
				return nil, "", "", err
			}
			inner, err := c.NewLock(name).Lock(outer.Context(ctx))
			return func() error {
				if inner != nil {
					err = inner.Unlock(context.Background())
				}
				return errors.Join(err, outer.Unlock(context.Background()))
			}, name, "2", err
		}},
		taker{"nested read", func(ctx context.Context, c *latchkey.Client, name string) (func() error, string, string, error) {
			outer, err := c.NewRWLock(name).Writer().Lock(ctx)
			if err != nil {
				return nil, "", "", err
			}
			inner, err := c.NewRWLock(name).Reader().Lock(outer.Context(ctx))
			return func() error {
				if inner != nil {
					err = inner.Unlock(context.Background())
				}
				return errors.Join(err, outer.Unlock(context.Background()))
			}, name, "", err
		}},
		taker{"permits", func(ctx context.Context, c *latchkey.Client, name string) (func() error, string, string, error) {
			s := c.NewPermitSemaphore(name)
			if _, err := s.TrySetPermits(ctx, 5); err != nil {
				return nil, "", "", err
			}
			permits, err := s.AcquireN(ctx, 3)
			return func() (err error) {
				for _, p := range permits {
					err = errors.Join(err, p.Release(context.Background()))
				}
				return err
			}, name, "2", err
		}},
		taker{"endless permit", func(ctx context.Context, c *latchkey.Client, name string) (func() error, string, string, error) {
			s := c.NewPermitSemaphore(name)
			if _, err := s.TrySetPermits(ctx, 5); err != nil {
				return nil, "", "", err
			}
			permit, err := s.Acquire(ctx, latchkey.Lease(latchkey.NoExpiry))
			return func() error { return permit.Release(context.Background()) }, name, "4", err
		}},
		taker{"semaphore", func(ctx context.Context, c *latchkey.Client, name string) (func() error, string, string, error) {
			s := c.NewSemaphore(name)
			if _, err := s.TrySetPermits(ctx, 5); err != nil {
				return nil, "", "", err
			}
			if err := s.AcquireN(ctx, 3); err != nil {
				return nil, "", "", err
			}
			return func() error { return s.ReleaseN(context.Background(), 3) }, name, "2", nil
		}},
	)
}()

// has checks that a server has the key with the wanted value.
func (k taker) has(admin *rig.Admin, key, want string) error {
	if !admin.Exists(key) {
		return errors.New("it is not there")
	}
	if want == "" {
		return nil
	}
	dump := fmt.Sprint(admin.Dump(key)[key])
	if !strings.Contains(dump, want) {
		return fmt.Errorf("%s instead of %s", dump, want)
	}
	return nil
}

// clean returns nil when nothing is held.
func clean(admin *rig.Admin, name string) func() error {
	return func() error {
		switch admin.Text("TYPE", name) {
		case "string":
			if v := admin.Text("GET", name); v != "5" {
				return fmt.Errorf("%s", v)
			}
			return nil
		case "none":
			return free(admin, name)()
		}
		return errors.New(admin.Text("TYPE", name))
	}
}

// The reply to the n-th command is lost, for each way to acquire something. If the caller succeeds,
// the replica has it too, and nothing else stays.
func TestReplicas_nth_reply_lost(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	every := 1
	if testing.Short() {
		every = 2
	}
	for _, k := range takers {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= 7; n += every {
				for _, each := range losses {
					if each.loss != rig.Mute { // which costs seconds each time
						k.losing(t, r, n, rig.Any, each.loss)
					}
				}
			}
			k.losing(t, r, 1, rig.Named("WAIT"), rig.Mute)
		})
	}
}

func (k taker) losing(t *testing.T, r *rig.Replicated, n int, match rig.Match, loss rig.Loss) {
	t.Helper()
	tap := rig.NewTap(t, r.Master)
	options := confirmed(600 * time.Millisecond)
	options.RetryBudget = soon
	client := connectVia(t, r.Master, tap.Addr(), options)
	name := rig.Name(t)
	tap.Lose(n, match, loss)
	giveBack, key, want, err := k.take(within(t, soon), client, name)
	if err == nil {
		assert.NoError(t, k.has(rig.NewAdmin(t, r.Replicas[0]), key, want), "%v %d", loss, n)
	}
	if giveBack != nil {
		err = errors.Join(err, giveBack())
	}
	t.Log(loss, n, err)
	rig.Eventually(t, 2*soon, "nothing is held", clean(rig.NewAdmin(t, r.Master), name))
}

// The scripts are flushed again and again.
func TestReplicas_scripts_flushed(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin, replica := rig.NewAdmin(t, r.Master), rig.NewAdmin(t, r.Replicas[0])
	client := connect(t, r.Master, confirmedAtLast)
	hold := mustLock(t, client.NewLock(rig.Name(t)))
	for _, k := range takers {
		admin.Do("SCRIPT", "FLUSH")
		giveBack, key, want, err := k.take(within(t, soon), client, rig.Name(t))
		require.NoError(t, err, k.name)
		assert.NoError(t, k.has(replica, key, want), k.name)
		assert.NoError(t, giveBack(), k.name)
	}
	admin.Do("SCRIPT", "FLUSH")
	renewedAgain(t, confirmedAtLast.Lease, hold)
	mustUnlock(t, hold)
}

// A borrowed client gets confirmations whatever its settings.
func TestReplicas_borrowed(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	replica := rig.NewAdmin(t, r.Replicas[0])
	for what, set := range map[string]func(*rueidis.ClientOption){
		"default":     func(*rueidis.ClientOption) {},
		"RESP2":       func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true },
		"no pipeline": func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true },
		"short lives": func(o *rueidis.ClientOption) { o.ConnLifetime = 50 * time.Millisecond },
		"small pool":  func(o *rueidis.ClientOption) { o.BlockingPoolSize = 2 },
		"cleaned up":  func(o *rueidis.ClientOption) { o.BlockingPoolCleanup = 10 * time.Millisecond },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			option := r.Master.Options(r.Master.Addr())
			set(&option)
			client, closeAll, err := borrow(option, confirmedAtLast)
			require.NoError(t, err)
			hold := mustLock(t, client.NewLock(rig.Name(t)))
			crowd := rig.Goroutines(t)
			name := rig.Name(t)
			for i := range 4 {
				crowd.Go(func() {
					for n := range 2 {
						for j, k := range takers {
							giveBack, key, want, err := k.take(within(t, soon), client, fmt.Sprint(name, i, n, j))
							if !assert.NoError(t, err, k.name) {
								return
							}
							assert.NoError(t, k.has(replica, key, want), k.name)
							assert.NoError(t, giveBack(), k.name)
						}
					}
				})
			}
			crowd.Wait()
			require.NoError(t, hold.Err())
			mustUnlock(t, hold)
			require.NoError(t, closeAll(within(t, soon)))
		})
	}
}

// An owner that was refused because of too few replicas can try again, as itself and as a guest.
func TestReplicas_owner_tries_again(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin := rig.NewAdmin(t, r.Master)
	client, guest := connect(t, r.Master, confirmed(600*time.Millisecond)), connect(t, r.Master, confirmed(600*time.Millisecond))
	owner, base := client.NewOwner(), rig.Name(t)
	// refused lets the owner ask for the locks while the replica is silent.
	refused := func(by *latchkey.Client, kinds []kind, owner func(k kind) latchkey.Owner) {
		r.Replicas[0].Pause(t)
		asking := rig.Goroutines(t)
		for _, k := range kinds {
			asking.Go(func() {
				_, err := k.open(by, base+k.name).Lock(within(t, soon), latchkey.As(owner(k)))
				assert.ErrorIs(t, err, latchkey.ErrNotReplicated, k.name)
			})
		}
		asking.Wait()
		r.Replicas[0].Resume(t)
		r.AwaitInStep()
	}
	both := []func(kind) bool{reentrant, guests}
	var asked, visited []kind
	for _, k := range kinds {
		if reentrant(k) {
			asked = append(asked, k)
		}
		if accepted(k, both) {
			visited = append(visited, k)
		}
	}
	refused(client, asked, func(kind) latchkey.Owner { return owner })
	holds, before := map[string]*latchkey.Hold{}, map[string]map[string]string{}
	for _, k := range asked {
		require.False(t, admin.Exists(base+k.name), k.name)
		holds[k.name] = confirmedHold(t, k.open(client, base+k.name), latchkey.As(owner))
		before[k.name] = admin.Dump(base + k.name)[base+k.name].Hash
	}
	refused(guest, visited, func(k kind) latchkey.Owner { return holds[k.name].Share() })
	for _, k := range visited {
		assert.Equal(t, before[k.name], admin.Dump(base + k.name)[base+k.name].Hash, k.name)
		mustUnlock(t, confirmedHold(t, k.open(guest, base+k.name), latchkey.As(holds[k.name].Share())))
	}
	for _, hold := range holds {
		mustUnlock(t, hold)
	}
	rig.Eventually(t, soon, "nothing is left", free(admin, base))
}

// confirmedHold locks, again and again until the replicas confirm it in time.
func confirmedHold(t *testing.T, lock latchkey.Locker, options ...latchkey.LockOption) (hold *latchkey.Hold) {
	t.Helper()
	rig.Eventually(t, 3*soon, "the replicas confirm", func() (err error) {
		hold, err = lock.Lock(within(t, soon), options...)
		return err
	})
	return hold
}

// confirmedAtLast leaves the replicas the time that they may need on a busy machine.
var confirmedAtLast = latchkey.Options{
	Replicas: latchkey.Replicas{Min: 1, Timeout: 8 * time.Second}, RetryBudget: 12 * time.Second, Lease: 12 * time.Second,
}

// renewedAgain waits until holds are renewed after now.
func renewedAgain(t *testing.T, lease time.Duration, holds ...*latchkey.Hold) {
	t.Helper()
	renewedSince(t, time.Now().Add(lease/20), lease, holds...)
}

// The rights of docs/reference/keys.md plus WAIT are enough, and nothing else is tried.
func TestReplicas_minimal_permissions(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	admin, replica := rig.NewAdmin(t, r.Master), rig.NewAdmin(t, r.Replicas[0])
	narrow(t, r.Master, latchkey.Options{}) // creates the user
	admin.Do("ACL", "SETUSER", "narrow", "+wait")
	client, err := latchkey.Connect(t.Context(), "redis://narrow:secret@"+r.Master.Addr(), confirmedAtLast)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close(within(t, soon))) })
	hold := mustLock(t, client.NewLock("orders:held"))
	for _, k := range takers {
		name := "orders:" + k.name
		giveBack, key, want, err := k.take(within(t, soon), client, name)
		require.NoError(t, err, k.name)
		assert.NoError(t, k.has(replica, key, want), k.name)
		assert.NoError(t, giveBack(), k.name)
	}
	admin.Do("CONFIG", "SET", "maxmemory", "1") // a renewal needs none
	renewedAgain(t, confirmedAtLast.Lease, hold)
	admin.Do("CONFIG", "SET", "maxmemory", "0")
	mustUnlock(t, hold)
	nothingDenied(t, admin)
}

// When the replicas do not confirm a request for which permits were kept, the semaphore gets all
// permits back.
func TestReplicas_kept_permits(t *testing.T) {
	t.Parallel()
	r := rig.NewReplicated(t, 1, 0)
	options := confirmed(600 * time.Millisecond)
	options.Tuning.StaleWaiterTimeout = time.Second
	other := newSemaphore(t, connect(t, r.Master), 3) // which needs no confirmation
	s := connect(t, r.Master, options).NewSemaphore(other.Name())
	require.NoError(t, other.AcquireN(t.Context(), 2))
	waiting := make(chan error, 1)
	go func() { waiting <- s.AcquireN(within(t, soon), 3) }()
	rig.Eventually(t, soon, "permits are kept", func() error {
		if !rig.NewAdmin(t, r.Master).Exists("latchkey_sc_bar:{" + s.Name() + "}") {
			return errors.New("not yet")
		}
		return nil
	})
	r.Replicas[0].Pause(t)
	require.NoError(t, other.ReleaseN(t.Context(), 2))
	require.ErrorIs(t, rig.Await(t, soon, "the answer", waiting), latchkey.ErrNotReplicated)
	assert.Equal(t, 3, available(t, other))
	r.Replicas[0].Resume(t)
	require.NoError(t, other.TryAcquireN(t.Context(), 3), "nothing is kept")
}
