package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// counted is an operation that changes the number of permits, with the available permits before and
// after it. An acquisition that fails is undone. Every other operation is repeated until it takes
// effect.
type counted struct {
	name          string
	before, after int
	acquires      bool
	do            func(ctx context.Context, c *latchkey.Client, name string) error
}

// firstOf drops the first result of an operation and returns its error.
func firstOf[T any](_ T, err error) error { return err }

var onSemaphores = []counted{
	{"Acquire", 5, 3, true, func(ctx context.Context, c *latchkey.Client, name string) error {
		return c.NewSemaphore(name).AcquireN(ctx, 2)
	}},
	{"TryAcquire", 5, 3, true, func(ctx context.Context, c *latchkey.Client, name string) error {
		return c.NewSemaphore(name).TryAcquireN(ctx, 2)
	}},
	{"Drain", 5, 0, true, func(ctx context.Context, c *latchkey.Client, name string) error {
		n, err := c.NewSemaphore(name).Drain(ctx)
		if err == nil && n != 5 {
			return fmt.Errorf("drained %d", n)
		}
		return err
	}},
	{"Release", 5, 7, false, func(ctx context.Context, c *latchkey.Client, name string) error {
		return c.NewSemaphore(name).ReleaseN(ctx, 2)
	}},
	{"ReleaseIfExists", 5, 7, false, func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewSemaphore(name).ReleaseIfExists(ctx, 2))
	}},
	{"AddPermits", 5, 7, false, func(ctx context.Context, c *latchkey.Client, name string) error {
		return c.NewSemaphore(name).AddPermits(ctx, 2)
	}},
	{"SetPermits", 5, 9, false, func(ctx context.Context, c *latchkey.Client, name string) error {
		return c.NewSemaphore(name).SetPermits(ctx, 9)
	}},
}

// onPermits are operations on a PermitSemaphore.
var onPermits = []counted{
	{"AcquireN", 5, 3, true, func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewPermitSemaphore(name).AcquireN(ctx, 2))
	}},
	{"AcquireN for ever", 5, 3, true, func(ctx context.Context, c *latchkey.Client, name string) error {
		return firstOf(c.NewPermitSemaphore(name).AcquireN(ctx, 2, latchkey.Lease(latchkey.NoExpiry)))
	}},
	{"AddPermits", 5, 7, false, func(ctx context.Context, c *latchkey.Client, name string) error {
		return c.NewPermitSemaphore(name).AddPermits(ctx, 2)
	}},
	{"SetPermits", 5, 9, false, func(ctx context.Context, c *latchkey.Client, name string) error {
		return c.NewPermitSemaphore(name).SetPermits(ctx, 9)
	}},
}

// The replies of the first n commands of each operation are lost, or the commands themselves. The
// operation counts once, or not at all if it is an acquisition that failed.
func TestOperationsCountOnce(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	t.Run("Semaphore", func(t *testing.T) {
		countOnce(t, onSemaphores,
			func(t *testing.T, c *latchkey.Client, name string) error {
				return firstOf(c.NewSemaphore(name).TrySetPermits(t.Context(), 5))
			},
			func(ctx context.Context, c *latchkey.Client, name string) (int, error) {
				return freeIn(ctx, c.NewSemaphore(name))
			})
	})
	t.Run("PermitSemaphore", func(t *testing.T) {
		countOnce(t, onPermits,
			func(t *testing.T, c *latchkey.Client, name string) error {
				return firstOf(c.NewPermitSemaphore(name).TrySetPermits(t.Context(), 5))
			},
			func(ctx context.Context, c *latchkey.Client, name string) (int, error) {
				return freeIn(ctx, c.NewPermitSemaphore(name))
			})
	})
}

type (
	preparation func(t *testing.T, c *latchkey.Client, name string) error
	reading     func(ctx context.Context, c *latchkey.Client, name string) (int, error)
)

func countOnce(t *testing.T, operations []counted, prepare preparation, read reading) {
	t.Helper()
	for _, o := range operations {
		for _, each := range losses {
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprintf("%s, %s %d", o.name, each.name, n), func(t *testing.T) {
					t.Parallel()
					countsOnce(t, o, each.loss, n, prepare, read)
				})
			}
		}
	}
}

func countsOnce(t *testing.T, o counted, loss rig.Loss, n int, prepare preparation, read reading) {
	t.Helper()
	server, name := rig.Shared(), rig.Name(t)
	witness, tap := connect(t, server), rig.NewTap(t, server)
	require.NoError(t, prepare(t, witness, name))
	client := connectVia(t, server, tap.Addr())
	for range n {
		tap.Lose(1, rig.Mentions(name), loss) // one after the other, including those of retries
	}
	err := o.do(t.Context(), client, name)
	want := o.after
	if err != nil {
		require.ErrorIs(t, err, latchkey.ErrUnknownOutcome)
		if o.acquires {
			want = o.before
		}
	}
	check := func() error {
		if got, err := read(t.Context(), witness, name); err != nil || got != want {
			return errors.Join(err, fmt.Errorf("%d available, not %d", got, want))
		}
		return nil
	}
	if err == nil {
		require.NoError(t, check())
		return
	}
	rig.Eventually(t, soon, "what was told becomes true", check)
}

// TrySetPermits reports that this call set the permits, even if its reply was lost.
func TestSettingTellsWhoDidIt(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	client := connectVia(t, server, tap.Addr())
	for range 3 {
		name := rig.Name(t)
		tap.Lose(1, rig.Mentions(name), rig.Cut)
		set, err := client.NewSemaphore(name).TrySetPermits(t.Context(), 1)
		require.NoError(t, err)
		assert.True(t, set)
		tap.Lose(1, rig.Mentions(name+"p"), rig.Cut)
		set, err = client.NewPermitSemaphore(name+"p").TrySetPermits(t.Context(), 1)
		require.NoError(t, err)
		assert.True(t, set)
	}
}

// A release by id reports the correct states even if its reply was lost.
func TestReleaseByIDTellsTheTruth(t *testing.T) {
	server := rig.Shared()
	s := newPermits(t, connect(t, server), 3)
	p, err := s.AcquireN(t.Context(), 2, latchkey.Lease(time.Minute))
	require.NoError(t, err)
	tap := rig.NewTap(t, server)
	other := connectVia(t, server, tap.Addr()).NewPermitSemaphore(s.Name())
	for _, each := range p {
		tap.Lose(1, rig.Mentions(s.Name()), rig.Cut)
		states, err := other.Release(t.Context(), each.ID())
		require.NoError(t, err)
		assert.Equal(t, []latchkey.PermitState{latchkey.PermitReleased}, states)
	}
	counts(t, s, 3, 0)
}

// An acquisition that is executed after the caller gave up, and after its undo, takes nothing.
func TestAcquisitionOfPermitsExecutedLate(t *testing.T) {
	t.Parallel()
	late := map[string]func(ctx context.Context, c *latchkey.Client, name string) error{
		"Semaphore": onSemaphores[0].do, "PermitSemaphore": onPermits[0].do, "PermitSemaphore for ever": onPermits[1].do,
	}
	for what, acquire := range late {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server, name := rig.Shared(), rig.Name(t)
			witness, tap := connect(t, server), rig.NewTap(t, server)
			set := witness.NewSemaphore(name).TrySetPermits
			free := func() (int, error) { return freeIn(t.Context(), witness.NewSemaphore(name)) }
			if what != "Semaphore" {
				set = witness.NewPermitSemaphore(name).TrySetPermits
				free = func() (int, error) { return freeIn(t.Context(), witness.NewPermitSemaphore(name)) }
			}
			require.NoError(t, firstOf(set(t.Context(), 5)))
			require.NoError(t, acquire(t.Context(), witness, name), "the server must know the script that is sent late")
			client := connectVia(t, server, tap.Addr())
			first := tap.Lose(1, rig.Mentions(name), rig.CutRequest)
			heal := tap.LoseAll(rig.Mentions(name), rig.CutRequest)
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			ended := make(chan error, 1)
			go func() { ended <- acquire(ctx, client, name) }()
			lost := rig.Await(t, soon, "the acquisition", first)
			giveUp()
			require.ErrorIs(t, rig.Await(t, soon, "the end of the call", ended), latchkey.ErrUnknownOutcome)
			tap.Forget()
			heal()
			rig.Eventually(t, soon, "an undo arrives", func() error {
				if len(tap.Commands()) == 0 {
					return errors.New("nothing was sent")
				}
				return nil
			})
			deliverLate(t, server, lost.Args)
			rig.Eventually(t, soon, "nothing was taken for good", func() error {
				if n, err := free(); n != 3 || err != nil {
					return errors.Join(err, fmt.Errorf("%d available", n))
				}
				return nil
			})
		})
	}
}

// The server keeps notes so that operations count once: about one for each name, as many as there
// were operations in flight at once, and not one for each goroutine that used the name.
func TestNotesOfOperationsAreFew(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	const names, goroutines = 50, 8
	all := rig.Goroutines(t)
	for g := range goroutines {
		all.Go(func() {
			for i := range 2 * names {
				s := client.NewSemaphore(fmt.Sprint(name, "-", (i+g*names/goroutines)%names))
				assert.NoError(t, s.Release(t.Context()))
			}
		})
	}
	all.Wait()
	keys := rig.NewAdmin(t, server).Keys("latchkey_op:*" + name + "-*")
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":kind") })
	slices.Sort(keys)
	notes := len(slices.Compact(keys)) // a replica has them too
	t.Logf("%d notes of %d names", notes, names)
	assert.Less(t, notes, goroutines*2*names/4, "a quarter of the operations")
}

// deliverLate makes the server execute a copy of a command whose operation may be over.
func deliverLate(t *testing.T, server *rig.Server, command []string) {
	t.Helper()
	raw := server.Raw(t)
	if err := raw.Do(t.Context(), raw.B().Arbitrary(command...).Build()).Error(); err != nil && !rueidis.IsRedisNil(err) {
		require.ErrorContains(t, err, "LATCHKEY_PAST")
	}
}
