package tests

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// walkAround walks, calls do after the first object, and returns how often it saw each object.
func walkAround(t *testing.T, client *latchkey.Client, pattern string, do func()) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for o, err := range client.Objects(within(t, time.Minute), pattern) {
		require.NoError(t, err)
		assert.Equal(t, 1, o.HolderCount, o.Name)
		seen[o.Name]++
		if do != nil {
			do()
			do = nil
		}
	}
	return seen
}

// Whatever part of a slot has moved, each object in it is found. An object that moves to a master
// that the walk has already visited is found there.
func TestMigration_nothing_is_missed_by_a_walk(t *testing.T) {
	t.Parallel()
	eachHalf(t, func(t *testing.T, cluster *rig.Cluster, which func(key string) bool) {
		client := connectCluster(t, cluster, latchkey.Options{})
		tag := "{" + rig.Name(t) + "}"
		names := []string{}
		for _, k := range kinds {
			mustLock(t, k.open(client, tag+k.name), latchkey.Lease(time.Hour))
			names = append(names, tag+k.name)
		}
		moveKeys, finish := cluster.BeginMove(tag)
		moveKeys(which)
		seen := walkAround(t, client, tag+"*", func() {})
		for _, name := range names {
			assert.Contains(t, seen, name, "in a slot that is half moved")
		}
		seen = walkAround(t, client, tag+"*", func() {
			moveKeys(rig.EveryKey)
			finish()
		})
		for _, name := range names {
			assert.Contains(t, seen, name, "in a slot that moves during the walk")
		}
	})
}

// locksBehindATap holds n locks under a prefix on a server of their own, and returns a client that
// reaches it through a tap.
func locksBehindATap(t *testing.T, n int, options latchkey.Options) (prefix string, client *latchkey.Client, tap *rig.Tap) {
	t.Helper()
	if rig.Shared().Embedded() {
		t.Skip("the client of the embedded server is borrowed: its connections are not seen")
	}
	notInCluster(t, "the others go on")
	prefix = rig.Name(t) + ":"
	server := rig.Fresh(t)
	tap = rig.NewTap(t, server)
	maker := connect(t, server, unhurried)
	eachName(t, n, 16, func(name string) {
		_, err := maker.NewLock(prefix+name).TryLock(t.Context(), latchkey.Lease(time.Hour))
		assert.NoError(t, err)
	})
	return prefix, connectVia(t, server, tap.Addr(), options), tap
}

// A connection that breaks may be replaced by one to another server, where the cursor means
// nothing. The walk begins again and misses nothing.
func TestObjectsAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	const n = 1200
	prefix, client, tap := locksBehindATap(t, n, unhurried)
	seen := walkAround(t, client, allUnder(prefix), tap.Cut)
	assert.Len(t, seen, n)
	twice := 0
	for i := range n {
		if seen[prefix+"name-"+strconv.Itoa(i)] > 1 {
			twice++
		}
	}
	assert.Positive(t, twice, "the walk has begun again")
}

// A walk goes on for the RetryBudget, however often connections break in that time.
func TestObjectsAfterManyBrokenConnections(t *testing.T) {
	t.Parallel()
	const n, cuts = 600, 20
	prefix, client, tap := locksBehindATap(t, n, latchkey.Options{Lease: 5 * time.Minute, RetryBudget: 2 * time.Minute})
	seen, rounds := map[string]int{}, 0
	for o, err := range client.Objects(within(t, 3*time.Minute), allUnder(prefix)) {
		require.NoError(t, err)
		if seen[o.Name]++; seen[o.Name] > rounds && rounds < cuts {
			rounds++
			tap.Cut()
		}
	}
	assert.Len(t, seen, n)
}

// A failover during the walk costs no object: the walk repeats the part that may have missed
// something.
func TestFailover_during_a_walk(t *testing.T) {
	t.Parallel()
	const n = 1500
	lock := func(client *latchkey.Client) {
		eachName(t, n, 8, func(name string) {
			_, err := client.NewLock(name).TryLock(t.Context(), latchkey.Lease(time.Hour))
			assert.NoError(t, err)
		})
	}
	t.Run("of a cluster", func(t *testing.T) {
		t.Parallel()
		cluster := rig.NewCluster(t)
		client := connectCluster(t, cluster, persistent)
		lock(client)
		assert.Len(t, walkAround(t, client, "name-*", func() { cluster.Failover("name-1") }), n)
	})
	t.Run("behind Sentinel", func(t *testing.T) {
		t.Parallel()
		group := rig.NewSentinel(t, 1)
		client, err := latchkey.Connect(within(t, soon), group.URL(), persistent)
		require.NoError(t, err)
		t.Cleanup(func() { _ = client.Close(within(t, soon)) })
		lock(client)
		replica := rig.NewAdmin(t, group.Replicas()[0])
		rig.Eventually(t, soon, "the replica has all", func() error {
			if size := replica.Int("DBSIZE"); size < n {
				return fmt.Errorf("%d of %d", size, n)
			}
			return nil
		})
		assert.Len(t, walkAround(t, client, "name-*", func() { group.Failover() }), n)
	})
}
