package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Calls that a barrier refuses.

// All parties must give the same number of parties. A mismatch changes nothing.
func TestBarrierMismatch(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	admin := rig.NewAdmin(t, server)
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
	wrong := connect(t, server).NewBarrier(b.Name(), 5)
	waiting := arriveInBackground(within(t, soon), b)
	before := atBarrier(t, b, 1)
	_, err := wrong.Await(ctx)
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	assert.ErrorContains(t, err, "has 2 parties, not 5")
	after, err := wrong.State(ctx)
	require.NoError(t, err)
	assert.Equal(t, before.Who[0].Owner, after.Who[0].Owner)
	assert.Equal(t, 2, after.Parties)
	assert.Equal(t, 5, wrong.Parties())
	_, err = b.Await(ctx)
	require.NoError(t, err)
	require.NoError(t, rig.Await(t, soon, "the first", waiting).err)
	_, err = wrong.Await(ctx)
	require.ErrorIs(t, err, latchkey.ErrInvalid, "nor between two generations")
	require.NoError(t, wrong.Reset(ctx))
	assert.Equal(t, "0", admin.Text("HGET", b.Name(), "arrived"))
	completes(t, wrong)
}

func TestBarrierBadInput(t *testing.T) {
	sendsNothing(t, func(client *latchkey.Client) {
		ctx := t.Context()
		for _, name := range []string{"", "a{b", "a}b", "a{}b", "{a{b}}", "a\xffb", strings.Repeat("x", longestName+1)} {
			b := client.NewBarrier(name, 2)
			_, await := b.Await(ctx)
			_, state := b.State(ctx)
			for _, err := range []error{await, state, b.Reset(ctx), b.Do(ctx, nil)} {
				assert.ErrorIs(t, err, latchkey.ErrInvalid, name)
			}
		}
		for _, parties := range []int{0, -1, 1 << 31} {
			_, err := client.NewBarrier("name", parties).Await(ctx)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
		}
		for _, option := range []latchkey.WaitOption{latchkey.Wait(0), latchkey.Wait(-1), nil} {
			_, err := client.NewBarrier("name", 2).Await(ctx, option)
			assert.ErrorIs(t, err, latchkey.ErrInvalid)
		}
	})
}

func TestBarrierOfAnotherKind(t *testing.T) {
	server, name, ctx := rig.Shared(), rig.Name(t), t.Context()
	admin, client := rig.NewAdmin(t, server), connect(t, server)
	hold := mustLock(t, client.NewLock(name))
	before := admin.Dump(name)[name].Hash
	b := client.NewBarrier(name, 2)
	_, await := b.Await(ctx)
	_, state := b.State(ctx)
	for _, err := range []error{await, state, b.Reset(ctx)} {
		assert.ErrorIs(t, err, latchkey.ErrWrongKind)
	}
	assert.Equal(t, before, admin.Dump(name)[name].Hash)
	mustUnlock(t, hold)

	waiting := arriveInBackground(within(t, soon), b)
	atBarrier(t, b, 1)
	_, err := client.NewLock(name).TryLock(ctx)
	assert.ErrorIs(t, err, latchkey.ErrWrongKind)
	i, err := client.Inspect(ctx, name)
	require.NoError(t, err)
	assert.Equal(t, latchkey.KindBarrier, i.Kind)
	assert.Equal(t, "a barrier", i.What)
	assert.False(t, i.Locked())
	_, err = b.Await(ctx)
	require.NoError(t, err)
	require.NoError(t, rig.Await(t, soon, "the first", waiting).err)
}

// A name in braces is refused: it would share its keys with the name inside the braces.
func TestBarrierRefusesANameInBraces(t *testing.T) {
	t.Parallel()
	_, err := connect(t, rig.Shared()).NewBarrier("{"+rig.Name(t)+"}", 1).Await(t.Context())
	require.ErrorIs(t, err, latchkey.ErrInvalid)
}
