package tests

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Walks over many objects, and what they cost.

// fewer is n, or a twentieth of it on the embedded server, which scans all its keys for each
// command.
func fewer(n int) int {
	if rig.Shared().Embedded() {
		return n / 20
	}
	return n
}

// Each object is found among thousands of keys of applications and of keys stored next to objects.
func TestObjectsAmongThousands(t *testing.T) {
	t.Parallel()
	server, prefix := rig.Fresh(t), rig.Name(t)+":" // its keys would slow down the walks of other tests
	client, admin := connect(t, server, unhurried), rig.NewAdmin(t, server)
	n := fewer(700) // more than one piece of the walk
	want := map[string]bool{}
	eachName(t, n, 16, func(name string) {
		_, err := client.NewFencedLock(prefix+name).TryLock(context.Background(), latchkey.Lease(time.Hour))
		assert.NoError(t, err)
	})
	eachName(t, n, 1, func(name string) { want[prefix+name] = true })
	for i := range fewer(50) {
		number := strconv.Itoa(i)
		admin.Do("SET", prefix+"text"+number, "hello world "+number)
		admin.Do("HSET", prefix+"record"+number, "name", "Ann", "visits", number)
		admin.Do("RPUSH", prefix+"list"+number, "a")
		admin.Do("ZADD", "{"+prefix+"z"+number+"}:timeout", "1", "a")
		admin.Do("SET", "latchkey_op:{"+prefix+number+"}:a:b", "12")
		admin.Do("SET", "{"+prefix+number+"}:0b7c4c8a-0000-4000-8000-000000000000:1:rwlock_timeout:1", "1", "PX", "3600000")
	}
	found := allObjects(t, client, allUnder(prefix))
	assert.Len(t, found, n)
	for name := range want {
		assert.Contains(t, found, name)
	}
	everything := allObjects(t, client, "*"+quotePattern(prefix)+"*")
	assert.Len(t, everything, n, "fencing counters and notes are not objects")
}

// A walk costs one SCAN per 512 keys, and one script for every 64 objects that a SCAN finds.
func TestObjectsCostOneLookForEachPiece(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.Private)
	if rig.Shared().Embedded() {
		// Its SCAN is linear in the number of keys. The cost is counted on servers, where SCAN is
		// not.
		t.Skip("the embedded server looks at all its keys for each command, which takes too long")
	}
	notInCluster(t, "how many pieces there are depends on where the keys are")
	server := rig.Fresh(t)
	const n = 1200
	maker, tap := connect(t, server, unhurried), rig.NewTap(t, server)
	eachName(t, n, 16, func(name string) {
		_, err := maker.NewLock("job:"+name).TryLock(context.Background(), latchkey.Lease(time.Hour))
		assert.NoError(t, err)
	})
	client := connectVia(t, server, tap.Addr(), unhurried)
	require.Len(t, allObjects(t, client, "job:*"), n)
	tap.Forget()
	require.Len(t, allObjects(t, client, "job:*"), n)
	counts := map[string]int{}
	for _, c := range tap.Commands() {
		counts[c.Name()]++
	}
	pieces := counts["SCAN"]
	assert.LessOrEqual(t, pieces, 2*n/512+2)
	assert.LessOrEqual(t, counts["EVALSHA"], n/64+pieces, "a script looks at 64")
	assert.Len(t, counts, 2, "%v", counts)
}

// A lock with more owners than are listed still reports how many there are.
func TestObjectsWithManyHolders(t *testing.T) {
	t.Parallel()
	client, name := connect(t, rig.Shared(), latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}}), rig.Name(t)
	for range 100 {
		_, err := client.NewRWLock(name).Reader().TryLock(t.Context(), latchkey.MaxHold(time.Minute))
		require.NoError(t, err)
	}
	o := allObjects(t, client, quotePattern(name))[name]
	assert.Equal(t, latchkey.KindRWLock, o.Kind)
	assert.Equal(t, 100, o.HolderCount)
	assert.LessOrEqual(t, len(o.Holders), 65)
	o, err := client.Inspect(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, 100, o.HolderCount)
	assert.Len(t, o.Holders, 100, "of a single lock, all are listed")
}
