package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// ownerOf parses an owner from its text in Redis.
func ownerOf(t *testing.T, text string) latchkey.Owner {
	t.Helper()
	var owner latchkey.Owner
	require.NoError(t, owner.UnmarshalText([]byte(text)))
	return owner
}

const redissonThread = "9f0c2f3a-8b7a-41ee-b962-0242ac120002:71"

// An owner of any form prints as it is stored in Redis, and survives a round trip through text,
// JSON and the keys of a map. Only the zero Owner means no owner.
func TestOwnerText(t *testing.T) {
	client := connect(t, rig.Shared())
	for what, text := range map[string]string{
		"of this library": client.NewOwner().String(), "a thread of Redisson": redissonThread,
		"a transaction of Redisson": redissonThread + ":0f2a", "a client id in capitals": strings.ToUpper(redissonThread),
		"a number with zeros": redissonThread[:37] + "007", "base64": "q83vEjRWeJCrze8SNFZ4kA==",
		"with a colon": "host:7", "with a quote": `a"b`, "umlauts": "ä:1",
	} {
		owner := ownerOf(t, text)
		assert.Equal(t, text, owner.String(), what)
		assert.False(t, owner.IsZero(), what)
		encoded, err := json.Marshal(map[latchkey.Owner]latchkey.Holder{owner: {Owner: owner, Count: 1}})
		require.NoError(t, err)
		var decoded map[latchkey.Owner]latchkey.Holder
		require.NoError(t, json.Unmarshal(encoded, &decoded))
		assert.Equal(t, owner, decoded[owner].Owner, what)
	}
	bytesOnly := ownerOf(t, "\xff\x00\xfe")
	text, err := bytesOnly.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "\xff\x00\xfe", string(text))

	zero := ownerOf(t, "")
	assert.True(t, zero.IsZero())
	assert.Equal(t, latchkey.Owner{}, zero)
	assert.Empty(t, zero.String())
}

// Owners and events are logged as text and attributes.
func TestOwnersAreLogged(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	owner := ownerOf(t, redissonThread)
	logger.Info("here", "owner", owner, "event", latchkey.Event{
		Type: latchkey.EventLost, Kind: latchkey.KindLock, Name: "job", Owner: owner, Held: time.Second, Err: latchkey.ErrLost,
	})
	assert.Contains(t, log.String(), " owner="+redissonThread+" event.type=lost event.kind=lock event.name=job event.owner="+
		redissonThread+" event.held=1s event.err=\"latchkey: hold lost\"")
}

// Each kind of lock reports the same owner as its hold.
func TestHoldersHaveTheOwnerOfTheHold(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		lock := k.open(connect(t, rig.Shared()), rig.Name(t))
		hold := mustLock(t, lock)
		found, err := lock.Inspect(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []latchkey.Holder{{Owner: hold.Owner(), Count: 1, Write: k.sided}}, found.Holders)
		mustUnlock(t, hold)
	})
}

// The owner of another library is reported as it is stored, and cannot re-enter: By and WithOwner
// refuse it before anything is sent. They refuse the id of a permit as well.
func TestOwnersThatCannotReenter(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	admin := rig.NewAdmin(t, server)
	const token = "q83vEjRWeJCrze8SNFZ4kA==" // in redsync's format
	admin.Do("SET", name, token, "PX", "60000")
	found, err := connect(t, server).Inspect(t.Context(), name)
	require.NoError(t, err)
	require.Len(t, found.Holders, 1)
	foreign := found.Holders[0].Owner
	assert.Equal(t, token, foreign.String())

	eachKind(t, func(t *testing.T, k kind) {
		sendsNothing(t, func(client *latchkey.Client) {
			lock := k.open(client, "name")
			_, err := lock.Lock(t.Context(), latchkey.As(foreign))
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			assert.Contains(t, err.Error(), `owner "`+token+`" cannot re-enter a lock`)
			_, err = lock.TryLock(t.Context(), latchkey.As(foreign))
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			if k.reentrant {
				_, err = lock.Lock(latchkey.WithOwner(t.Context(), foreign))
				require.ErrorIs(t, err, latchkey.ErrInvalid)
			}
		})
	})
	admin.Do("DEL", name)
}

// Events of a permit carry its id, for each of the permits that are acquired together.
func TestPermitEventsHaveTheirID(t *testing.T) {
	t.Parallel()
	events := make(chan latchkey.Event, 100)
	client := connect(t, rig.Shared(), latchkey.Options{Observer: func(e latchkey.Event) { events <- e }})
	s := newPermits(t, client, 3)
	permits, err := s.AcquireN(t.Context(), 2)
	require.NoError(t, err)
	seen, owners := map[latchkey.EventType][]string{}, map[string][]latchkey.Owner{}
	await := func(n int) {
		for range n {
			e := rig.Await(t, soon, "an event", events)
			assert.Equal(t, latchkey.KindPermit, e.Kind)
			assert.Equal(t, s.Name(), e.Name)
			seen[e.Type] = append(seen[e.Type], e.Permit)
			owners[e.Permit] = append(owners[e.Permit], e.Owner)
		}
	}
	await(3)
	ids := []string{permits[0].ID(), permits[1].ID()}
	assert.Equal(t, ids[:1], seen[latchkey.EventAttempt])
	assert.ElementsMatch(t, ids, seen[latchkey.EventAcquired])
	require.NoError(t, permits[0].Release(t.Context()))
	_, err = connect(t, rig.Shared()).NewPermitSemaphore(s.Name()).Release(t.Context(), ids[1])
	require.NoError(t, err)
	require.ErrorIs(t, permits[1].Release(context.Background()), latchkey.ErrLost)
	await(2)
	assert.Equal(t, ids[:1], seen[latchkey.EventReleased])
	assert.Equal(t, ids[1:], seen[latchkey.EventLost])
	for _, id := range ids {
		of := owners[id]
		assert.Equal(t, slices.Repeat(of[:1], len(of)), of, "one owner")
		assert.Equal(t, clientOf(client.NewOwner().String()), clientOf(of[0].String()))
	}
	assert.NotEqual(t, owners[ids[0]][0], owners[ids[1]][0])
}
