package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestInspectAsJSON(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	held := hold(t, server.Client().NewFencedLock("orders"))

	got := latchkeyCLI(t, server, "inspect", "orders", "--json")
	assert.Zero(t, got.code)
	assert.Empty(t, got.stderr)
	assert.JSONEq(t, `{
		"name": "orders", "key": "orders", "kind": "lock", "locked": true, "ttl_ms": 30000,
		"holders": [{"owner": "`+held.Owner().String()+`", "count": 1}], "token": 1
	}`, got.stdout)
}

func TestInspectFree(t *testing.T) {
	server := latchkeytest.NewServer(t)

	got := latchkeyCLI(t, server, "inspect", "orders")
	assert.Zero(t, got.code, "a free lock is an answer, not an error")
	assert.Equal(t, "orders is free\n", got.stdout)

	got = latchkeyCLI(t, server, "inspect", "--json", "orders")
	assert.JSONEq(t, `{"name": "orders", "key": "orders", "kind": "none", "locked": false, "ttl_ms": 0,
		"holders": [], "token": 0}`, got.stdout)
}

func TestInspectForPeople(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	orders := server.Client().NewLock("orders")
	held := hold(t, orders)
	_, err := orders.TryLock(held.Context(t.Context()))
	require.NoError(t, err)

	got := latchkeyCLI(t, server, "inspect", "orders")
	assert.Equal(t, "orders is locked\n"+
		"  kind     lock\n"+
		"  expires  in 30s unless renewed\n"+
		"  held by  "+held.Owner().String()+", 2 times\n", got.stdout)
}

func TestInspectReadersAndWriters(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	orders := server.Client().NewRWLock("orders")
	held := hold(t, orders.WriteLock())
	_, err := orders.ReadLock().TryLock(held.Context(t.Context()))
	require.NoError(t, err)
	owner := held.Owner().String()

	got := latchkeyCLI(t, server, "inspect", "orders")
	assert.Contains(t, got.stdout, "  held by  "+owner+", writing\n")
	assert.Contains(t, got.stdout, "  held by  "+owner+", reading\n")

	got = latchkeyCLI(t, server, "inspect", "orders", "--json")
	var reply inspectionReply
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &reply))
	assert.ElementsMatch(t, []holderReply{{owner, 1, true}, {owner, 1, false}}, reply.Holders)
}

func TestInspectOfSomethingElse(t *testing.T) {
	server := latchkeytest.NewServer(t)
	client := rawTo(t, server)
	require.NoError(t, client.Do(t.Context(), client.B().Rpush().Key("list").Element("a").Build()).Error())

	got := latchkeyCLI(t, server, "inspect", "list")
	assert.Zero(t, got.code)
	assert.Contains(t, got.stdout, "list is something else than a lock\n")

	got = latchkeyCLI(t, server, "inspect", "list", "--json")
	var reply struct {
		Kind string `json:"kind"`
		TTL  int    `json:"ttl_ms"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &reply))
	assert.Equal(t, "unknown", reply.Kind)
	assert.Equal(t, -1, reply.TTL, "-1 stands for no expiry, as in Redis")
}

func TestUnlock(t *testing.T) {
	server := latchkeytest.NewServer(t)
	held := hold(t, server.Client(latchkey.Options{Lease: 200 * time.Millisecond}).NewLock("orders"))

	got := latchkeyCLI(t, server, "unlock", "orders")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "latchkey unlock --force orders", "the refusal says what to do")
	require.NoError(t, held.Err())
	assert.True(t, isLocked(t, server, "orders"))

	got = latchkeyCLI(t, server, "unlock", "--force", "orders")
	assert.Equal(t, result{stdout: "orders is unlocked\n"}, got)
	assert.False(t, isLocked(t, server, "orders"))
	<-held.Lost()

	got = latchkeyCLI(t, server, "unlock", "--force", "orders")
	assert.Equal(t, result{stdout: "orders was free already\n"}, got)
}

func TestUnlockAsJSON(t *testing.T) {
	server := latchkeytest.NewServer(t)
	hold(t, server.Client().NewMutex("orders"))

	got := latchkeyCLI(t, server, "unlock", "--force", "--json", "orders")
	assert.Zero(t, got.code)
	assert.JSONEq(t, `{"name": "orders", "was_held": true}`, got.stdout)
	got = latchkeyCLI(t, server, "unlock", "orders", "--force", "--json")
	assert.JSONEq(t, `{"name": "orders", "was_held": false}`, got.stdout)
}

func TestUnlockLeavesOtherThingsAlone(t *testing.T) {
	server := latchkeytest.NewServer(t)
	client := rawTo(t, server)
	require.NoError(t, client.Do(t.Context(), client.B().Rpush().Key("list").Element("a").Build()).Error())

	got := latchkeyCLI(t, server, "unlock", "--force", "list")
	assert.Equal(t, exitSoftware, got.code)
	assertOneLine(t, got.stderr)
	exists, err := client.Do(t.Context(), client.B().Exists().Key("list").Build()).AsBool()
	require.NoError(t, err)
	assert.True(t, exists)
}
