package fair_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/testredis"
)

// clientB is the client of ownerB and of ownerC.
var clientB, _, _ = strings.Cut(ownerB, ":")

// clientD is a client that does not listen.
const clientD = "55555555-5555-4555-8555-555555555555"

// granting returns a fair lock that grants its waiters leases of 5 s.
func granting(t *testing.T) fairScripts {
	s := newFairScripts(t)
	s.lease = "5000"
	return s
}

// hears subscribes to a channel and returns the messages that are published on it.
func (s fairScripts) hears(channel string) <-chan string {
	s.t.Helper()
	return testredis.Hear(s.t, s.c, channel)
}

// clientHears returns the messages on the channel of a client.
func (s fairScripts) clientHears(client string) <-chan string {
	s.t.Helper()
	return s.hears("latchkey:{" + client + "}")
}

// grantOf returns the message that reports a grant.
func (s fairScripts) grantOf(owner, token string) string {
	return "grant f " + owner + " " + token + " " + s.keys.Key
}

// A release makes the first of the queue the owner: the owner holds the lock for the short lease,
// leaves the queue, and its client gets a message. Redisson sees what it would have written itself.
func TestFairGrant_release(t *testing.T) {
	s := granting(t)
	heard := s.clientHears(clientB)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	ticket := s.wait(ownerC)
	before := s.deadline(ownerC)
	require.Equal(t, int64(1), s.release(ownerA, 0, "0"))
	require.Equal(t, s.grantOf(ownerB, "0"), <-heard)
	require.Equal(t, fairState{map[string]string{ownerB: "1"}, []string{ownerC}, []string{ownerC}, map[string]string{ownerC: ticket}}, s.state())
	require.InDelta(t, 5000, testredis.PTTLOf(t, s.c, s.keys.Key), 2000)
	require.InDelta(t, before, s.deadline(ownerC), float64(4*time.Second), "no deadline of others moves")

	require.Nil(t, s.acquire(ownerB, s.stale, "17"), "if it tries all the same, it has the lock")
	require.Equal(t, int64(1), s.release(ownerB, 0, "0"))
	require.Equal(t, s.grantOf(ownerC, "0"), <-heard)
	require.Equal(t, int64(0), s.release(ownerC, 0, "0"))
	require.Equal(t, fairState{map[string]string{}, []string{}, nil, map[string]string{}}, s.state())
	require.Empty(t, heard)
}

// A copy of a release or an attempt that arrives after the grant changes nothing.
func TestFairGrant_late_copies(t *testing.T) {
	s := granting(t)
	s.clientHears(clientB)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	s.release(ownerA, 0, "0")
	state := s.state()
	require.Nil(t, s.once(s.releaseCall(ownerA, 0, "1")))
	require.Nil(t, s.once(s.acquireCall(ownerB, "1", s.stale, "")))
	require.Equal(t, []any{int64(0)}, s.once(s.refreshCall(ownerB)), "it has to retry, and finds that it has the lock")
	require.Equal(t, state, s.state())
}

// If the clients of the first waiters do not listen, all their places are passed over and the next
// waiter gets the lock.
func TestFairGrant_clients_that_are_gone(t *testing.T) {
	for _, gone := range []int{1, 7} {
		for _, each := range []int{1, 3, 20} {
			t.Run(strconv.Itoa(gone)+" clients of "+strconv.Itoa(each), func(t *testing.T) {
				s := granting(t)
				heard := s.clientHears(clientB)
				require.Nil(t, s.acquire(ownerA, s.stale, ""))
				for i := range gone {
					for n := range each {
						s.join(clientD[:35] + strconv.Itoa(i) + ":" + strconv.Itoa(n))
					}
				}
				s.join(ownerB)
				for i := gone - 1; i >= 0; i-- {
					s.join(clientD[:35] + strconv.Itoa(i) + ":late")
				}
				for range gone*each/pruneInOneScript + 1 {
					s.once(s.releaseCall(ownerA, 0, "0"))
				}
				require.Equal(t, s.grantOf(ownerB, "0"), <-heard)
				require.Equal(t, map[string]string{ownerB: "1"}, s.state().lock)
			})
		}
	}
}

// pruneInOneScript is the least number of dead waiters that a script removes.
const pruneInOneScript = 64

// A waiter whose client was gone only briefly gets its place back when it tries again.
func TestFairGrant_client_that_comes_back(t *testing.T) {
	s := granting(t)
	s.clientHears(clientB)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	ticket := s.wait(clientD + ":1")
	s.wait(ownerB)
	s.wait(ownerC)
	s.release(ownerA, 0, "0")
	require.Equal(t, []any{int64(0)}, s.refresh(clientD+":1"), "it has lost its place")
	require.IsType(t, []any{}, s.acquire(clientD+":1", s.stale, ticket))
	require.Equal(t, []string{clientD + ":1", ownerC}, s.state().queue)
}

// If listeners cannot be counted, the lease alone decides.
func TestFairGrant_without_a_count(t *testing.T) {
	s := granting(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	c := s.releaseCall(ownerA, 0, "0")
	c.Args[len(c.Args)-1] = "0"
	require.Equal(t, int64(0), s.once(c))
	require.Equal(t, map[string]string{ownerB: "1"}, s.state().lock)
}

// A waiter of Redisson, and a waiter of this library that polls for itself, learn on their own
// channels that the lock is free. A waiter that can be granted the lock waits for its turn.
func TestFairGrant_waiters_that_retry(t *testing.T) {
	s := granting(t)
	grants := s.clientHears(clientB)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	stranger := s.stranger(1)
	asks := s
	asks.lease = ""
	asks.wait(clientD + ":1")
	s.wait(ownerB)
	for _, waiter := range []string{stranger, clientD + ":1"} {
		heard := s.hears(s.keys.WaiterChannel(waiter))
		require.Equal(t, int64(1), s.once(s.releaseCall(s.holder(), 0, "0")))
		require.Equal(t, "0", <-heard)
		require.Empty(t, s.state().lock)
		require.Equal(t, waiter, s.state().queue[0])
		s.do("LPOP", s.keys.FairKeys()[1])
		s.do("ZREM", s.keys.FairKeys()[2], waiter)
		s.do("HSET", s.keys.Key, waiter, "1")
	}
	require.Equal(t, int64(1), s.once(s.releaseCall(s.holder(), 0, "0")))
	require.Equal(t, s.grantOf(ownerB, "0"), <-grants)
}

// holder returns the owner of the lock.
func (s fairScripts) holder() string {
	for owner := range s.state().lock {
		return owner
	}
	return ""
}

// A grant of a fenced lock carries a token that is larger than all earlier ones. A waiter of an
// ordinary fair lock of the same name gets no token.
func TestFairGrant_tokens(t *testing.T) {
	s := granting(t)
	s.fenced = "1"
	heard := s.clientHears(clientB)
	require.Equal(t, "1", s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	plain := s
	plain.fenced = "0"
	plain.wait(ownerB + "1")
	s.wait(ownerC)
	for _, grant := range []string{s.grantOf(ownerB, "2"), s.grantOf(ownerB+"1", "0"), s.grantOf(ownerC, "3")} {
		require.Equal(t, int64(1), plain.release(s.holder(), 0, "0"))
		require.Equal(t, grant, <-heard)
	}
	require.Equal(t, "3", s.acquire(ownerC, s.stale, ""), "it tries once more, and has the same token")
}

// If the server refuses a token, the first of the queue gets a message to try, and then learns why.
func TestFairGrant_token_refused(t *testing.T) {
	s := granting(t)
	s.fenced = "1"
	heard := s.clientHears(clientB)
	require.Equal(t, "1", s.acquire(ownerA, s.stale, ""))
	ticket := s.wait(ownerB)
	s.do("SET", s.keys.Token(), "something else")
	require.Equal(t, int64(1), s.release(ownerA, 0, "0"))
	require.Equal(t, "ask 0 "+ownerB+" "+s.keys.Key, <-heard)
	require.Empty(t, s.state().lock)
	require.Implements(t, (*error)(nil), s.once(s.acquireCall(ownerB, "1", s.stale, ticket)))
}

// Any call that finds the lock free without a release grants it to the first of the queue.
func TestFairGrant_free_lock(t *testing.T) {
	acts := map[string]func(s fairScripts){
		"one attempt":      func(s fairScripts) { require.IsType(s.t, []any{}, s.acquire(ownerA, "", "")) },
		"one who joins":    func(s fairScripts) { s.wait(ownerA) },
		"a refresh":        func(s fairScripts) { s.refresh(ownerC) },
		"one who leaves":   func(s fairScripts) { s.release(ownerC, 0, "1") },
		"a late release":   func(s fairScripts) { s.release(ownerA, 0, "0") },
		"one further back": func(s fairScripts) { s.acquire(ownerC, s.stale, s.state().places[ownerC]) },
	}
	for what, act := range acts {
		t.Run(what, func(t *testing.T) {
			s := granting(t)
			heard := s.clientHears(clientB)
			require.Nil(t, s.acquire(ownerA, s.stale, ""))
			s.wait(ownerB)
			s.wait(ownerC)
			s.do("DEL", s.keys.Key)
			act(s)
			require.Equal(t, s.grantOf(ownerB, "0"), <-heard)
			require.Equal(t, ownerB, s.holder())
			require.Empty(t, heard)
		})
	}
}

// An owner of this library without a note has lost the note, or was already used and reappears with
// an old queue. It counts as silent from the first look on, whatever its deadline is.
func TestFairGrant_owner_without_a_note(t *testing.T) {
	s := granting(t)
	s.stale = "200"
	const old = "77777777-7777-8777-8777-777777777777:1"
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	k, deadline := s.keys.FairKeys(), strconv.FormatInt(time.Now().Add(5*time.Minute).UnixMilli(), 10)
	require.NoError(t, s.do("RPUSH", k[1], old).Error())
	require.NoError(t, s.do("ZADD", k[2], deadline, old).Error())
	s.wait(ownerB)
	s.once(s.releaseCall(ownerA, 0, "0"))
	require.Equal(t, []string{old, ownerB}, s.state().queue, "it may come yet")
	require.Eventually(t, func() bool {
		return s.once(s.refreshCall(ownerB)).([]any)[0] == int64(2)
	}, time.Minute, 20*time.Millisecond, "the next one is the first")
	require.Nil(t, s.once(s.acquireCall(ownerB, "1", s.stale, "")))
}

// The note of a waiter says what it is to be granted. This part outlives its signs of life, and
// changes when the waiter tries again.
func TestFairGrant_note(t *testing.T) {
	s := granting(t)
	note := func() string {
		text := testredis.HashOf(t, s.c, s.keys.FairKeys()[3])[ownerB]
		require.Regexp(t, `^\d+:(\d+:\d:)?\d+$`, text)
		return text[strings.Index(text, ":")+1 : strings.LastIndex(text, ":")+1]
	}
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	ticket := s.wait(ownerB)
	require.Equal(t, "5000:0:", note())
	s.refresh(ownerB)
	require.Equal(t, "5000:0:", note())
	s.lease = ""
	s.acquire(ownerB, s.stale, ticket)
	require.Empty(t, note())
	s.lease, s.fenced = "200", "1"
	s.acquire(ownerB, s.stale, ticket)
	require.Equal(t, "200:1:", note())
}

// A waiter learns whether it must listen to waiters of Redisson. These wake it on a channel of its
// own.
func TestFairGrant_strangers_ahead(t *testing.T) {
	s := granting(t)
	ahead := func(reply any) any { return reply.([]any)[3] }
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	require.Equal(t, int64(0), ahead(s.acquire(ownerB, s.stale, "")))
	require.Equal(t, int64(0), ahead(s.acquire(ownerC, s.stale, "")))
	s.stranger(1)
	require.Equal(t, int64(0), ahead(s.acquire(ownerC, s.stale, s.state().places[ownerC])))
	require.Equal(t, int64(1), ahead(s.acquire(ownerC+"1", s.stale, "")))
	require.Equal(t, int64(1), ahead(s.acquire(ownerC+"2", s.stale, "")))
	require.Equal(t, int64(1), ahead(s.acquire(ownerC+"2", s.stale, s.state().places[ownerC+"2"])))
}

// One acquisition among others costs 22 commands in its two scripts.
func TestFairGrant_commands(t *testing.T) {
	s := granting(t)
	s.clientHears(clientB)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	_, joins := s.calls(s.acquireCall(ownerC, "1", s.stale, ""))
	_, releases := s.calls(s.releaseCall(ownerA, 0, "0"))
	require.LessOrEqual(t, len(joins)+len(releases), 22, "%v, %v", joins, releases)
	require.Equal(t, ownerB, s.holder())
}
