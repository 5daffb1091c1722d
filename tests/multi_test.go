package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// All members are held or none, and Unlock releases all of them.
func TestMultiLock(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	a, b := connect(t, server), connect(t, server)
	multi := func(c *latchkey.Client) *latchkey.MultiLock {
		return latchkey.NewMultiLock(c.NewLock(name+"1"), c.NewFairLock(name+"2"), c.NewRWLock(name+"3").Writer(), c.NewMutex(name+"4"))
	}
	hold := mustLock(t, multi(a))
	assert.Contains(t, hold.Name(), "multi(")
	locked, err := isLocked(t.Context(), multi(b))
	require.NoError(t, err)
	assert.True(t, locked)
	assert.Positive(t, hold.ValidFor())
	assert.Equal(t, 1, countOf(hold))
	for i := 1; i <= 4; i++ {
		assert.True(t, admin.Exists(name+strconv.Itoa(i)))
	}
	_, err = multi(b).TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	inner, err := a.NewLock(name + "1").TryLock(hold.Context(t.Context()))
	require.NoError(t, err, "a member can be entered again under the whole")
	mustUnlock(t, inner)
	require.NoError(t, hold.Extend(t.Context(), time.Minute))

	waiting := lockInBackground(within(t, soon), multi(b))
	awaitWaiter(t, admin, name+"1")
	mustUnlock(t, hold)
	assert.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
	next := rig.Await(t, soon, "the waiter", waiting)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
	rig.Eventually(t, soon, "nothing is left", free(admin, name))
}

// An attempt that finds a member busy, or whose caller gives up, leaves nothing behind, whichever
// member it is.
func TestMultiLockLeavesNothingBehind(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	var locks []latchkey.Locker
	for i := range 3 {
		locks = append(locks, client.NewLock(name+strconv.Itoa(i)))
	}
	for i := range 3 {
		holder := mustLock(t, connect(t, server).NewLock(name+strconv.Itoa(i)))
		_, err := latchkey.NewMultiLock(locks...).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		err = refused(t, func(wait latchkey.WaitOption) error {
			_, err := latchkey.NewMultiLock(locks...).Lock(t.Context(), wait)
			return err
		})
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the context has none")
		mustUnlock(t, holder)
		rig.Eventually(t, soon, "nothing is left", free(admin, name))
	}
}

// The loss of any member is the loss of the whole.
func TestMultiLockIsLostWithAMember(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	admin, client := rig.NewAdmin(t, server), connect(t, server, latchkey.Options{Lease: 2 * time.Second})
	hold := mustLock(t, latchkey.NewMultiLock(client.NewLock(name+"a"), client.NewLock(name+"b")))
	ctx := hold.Context(t.Context())
	admin.Do("DEL", name+"b")
	rig.Await(t, soon, "the loss", ctx.Done())
	assert.ErrorIs(t, context.Cause(ctx), latchkey.ErrLost)
	rig.Await(t, soon, "the loss", hold.Lost())
	assert.ErrorIs(t, hold.Err(), latchkey.ErrLost)
	assert.Zero(t, hold.ValidFor())
	err := hold.Unlock(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrNotHeld)
	assert.ErrorIs(t, err, latchkey.ErrLost)
	rig.Eventually(t, soon, "the other is released", free(admin, name))
}

func TestMultiLocksThatMakeNoSense(t *testing.T) {
	client, name := connect(t, rig.Shared()), rig.Name(t)
	rw := client.NewRWLock(name)
	lock := client.NewLock(name + "1")
	for what, l := range map[string]anyLock{
		"none": latchkey.NewMultiLock(), "nil": latchkey.NewMultiLock(lock, nil), "two sides": latchkey.NewMultiLock(rw.Reader(), rw.Writer()),
		"none red": latchkey.NewRedLock(latchkey.RedLockOptions{}), "twice red": latchkey.NewRedLock(latchkey.RedLockOptions{}, lock, lock, client.NewLock(name+"2")),
		"bad red": latchkey.NewRedLock(latchkey.RedLockOptions{RetryDelay: -1}, lock),
	} {
		_, err := l.TryLock(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
		_, err = l.ForceUnlock(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
		_, err = l.Inspect(t.Context())
		assert.ErrorIs(t, err, latchkey.ErrInvalid, what)
	}
	_, err := latchkey.NewMultiLock(lock).TryLock(t.Context(), latchkey.As(client.NewOwner()))
	assert.ErrorIs(t, err, latchkey.ErrInvalid)
	mustUnlock(t, mustLock(t, latchkey.NewMultiLock(lock, lock, latchkey.NewMultiLock(lock, client.NewLock(name+"2")))))
	hold := mustLock(t, latchkey.NewMultiLock(lock))
	_, err = hold.Downgrade(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrInvalid)
	freed, err := latchkey.NewMultiLock(lock).ForceUnlock(t.Context())
	require.NoError(t, err)
	assert.True(t, freed)
	assert.Error(t, hold.Unlock(t.Context()))
}

// grouper acquires groups of locks, with members in random order, and enters the sections that they
// guard. Its arguments: name, ticket, duration.
var grouper = rig.Child("grouper", func(_ context.Context, args []string) error {
	lasts, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	passes := 0
	err = withClients(args[1], func(client *latchkey.Client, raw rueidis.Client) error {
		var mu sync.Mutex
		var all sync.WaitGroup
		var failed error
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					err := passGroup(client, raw, args[0])
					mu.Lock()
					passes++
					failed = errors.Join(failed, err)
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		all.Wait()
		return failed
	})
	fmt.Println("passes", passes)
	return err
})

// passGroup acquires one of twenty groups of two to four of eight locks.
func passGroup(client *latchkey.Client, raw rueidis.Client, name string) error {
	group := rand.New(rand.NewPCG(uint64(rand.IntN(20)), 1)) //nolint:gosec // which members a group has
	members := group.Perm(8)[:2+group.IntN(3)]
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	var locks []latchkey.Locker
	for _, i := range members {
		locks = append(locks, client.NewLock(fmt.Sprint(name, i)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return latchkey.NewMultiLock(locks...).Do(ctx, func(ctx context.Context) error {
		for _, i := range members {
			if err := rig.NewSection(raw, fmt.Sprint(name, "section", i)).Pass(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Twenty groups with random members in random order, in four processes: nobody waits forever, and
// no member has two holders. LATCHKEY_TEST_MULTI_TIME sets the duration.
func TestOverlappingGroups(t *testing.T) {
	t.Parallel()
	lasts := rig.Campaign(t, "LATCHKEY_TEST_MULTI_TIME", 3*time.Second)
	server, name := rig.Shared(), rig.Name(t)
	var children []*rig.ChildProcess
	for range 4 {
		children = append(children, grouper.Start(t, name, server.Ticket(), lasts.String()))
	}
	var passes []int
	for _, child := range children {
		n, err := strconv.Atoi(child.Line(t, lasts+time.Minute, "passes"))
		require.NoError(t, err)
		passes = append(passes, n)
		child.Wait(t, soon)
	}
	slices.Sort(passes)
	t.Logf("passes of each process: %v", passes)
	assert.Positive(t, passes[0], "nobody starves")
}
