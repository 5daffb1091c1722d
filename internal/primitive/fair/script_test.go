package fair_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

const (
	ownerA = testredis.OwnerA
	ownerB = testredis.OwnerB
	ownerC = testredis.OwnerC
)

// fairScripts drives one fair lock by its bare scripts. It sends every call twice, and the second
// must change nothing, as after a lost reply.
type fairScripts struct {
	t      *testing.T
	c      *core.Parts
	keys   *keyspace.Keys
	stale  string
	fenced string // "1" or "0"
	lease  string // that a grant gives to waiters, or ""
}

func newFairScripts(t *testing.T) fairScripts {
	t.Helper()
	c := testredis.NewEngine(t)
	names := c.Config.Names(testredis.UniqueName(t, c))
	require.NoError(t, names.Invalid)
	return fairScripts{t, c, names, "5000", "0", ""}
}

// fairState is everything in Redis, except for times that keep running.
type fairState struct {
	lock    map[string]string
	queue   []string
	waiting []string // members of the deadlines, in the order of the queue
	places  map[string]string
}

func (s fairScripts) do(words ...string) rueidis.RedisResult {
	return testredis.Do(s.c, words...)
}

func (s fairScripts) state() fairState {
	s.t.Helper()
	k := s.keys.FairKeys()
	state := fairState{lock: testredis.HashOf(s.t, s.c, k[0]), places: map[string]string{}}
	queue, err := s.do("LRANGE", k[1], "0", "-1").AsStrSlice()
	require.NoError(s.t, err)
	state.queue = queue
	for _, owner := range queue {
		if s.do("ZSCORE", k[2], owner).Error() == nil {
			state.waiting = append(state.waiting, owner)
		}
	}
	size, err := s.do("ZCARD", k[2]).AsInt64()
	require.NoError(s.t, err)
	require.EqualValues(s.t, len(state.waiting), size, "queue and deadlines have the same members")
	for owner, note := range testredis.HashOf(s.t, s.c, k[3]) {
		since, until, _ := strings.Cut(note, ":")
		if until == "0" {
			since += " left"
		}
		state.places[owner] = since
	}
	return state
}

func (s fairScripts) acquireCall(owner, count, stale, ticket string) script.Call {
	return script.NewCall(script.FairAcquire, s.keys.FairKeys(), owner, "30000", count, "", "", "PUBLISH",
		s.keys.WaiterChannel(""), stale, ticket, "300000", s.fenced, s.lease, "latchkey:{", "}", "1")
}

func (s fairScripts) releaseCall(owner string, count int, waiting string) script.Call {
	return script.NewCall(script.FairRelease, s.keys.FairKeys(), owner, strconv.Itoa(count), "",
		"PUBLISH", s.keys.Channel, "0", waiting, s.stale, "latchkey:{", "}", "1")
}

func (s fairScripts) refreshCall(owners ...string) script.Call {
	return script.NewCall(script.FairRefresh, s.keys.FairKeys(), append([]string{s.stale, "PUBLISH", "}", "1",
		s.keys.WaiterChannel(""), "latchkey:{", strconv.Itoa(len(owners))}, owners...)...)
}

// once sends a call once.
func (s fairScripts) once(c script.Call) any {
	s.t.Helper()
	return testredis.RunScript(s.c, c.Cmd, c.Keys, c.Args...)
}

func (s fairScripts) twice(c script.Call) any {
	s.t.Helper()
	cmd, first := c.Cmd, s.once(c)
	state := s.state()
	second := s.once(c)
	require.Equal(s.t, state, s.state(), "the second time changes nothing")
	if cmd == script.FairRelease {
		return first
	}
	if refused, is := first.([]any); is && cmd == script.FairAcquire {
		last := min(len(refused), 4) // what follows is a time
		require.Equal(s.t, refused[1:last], second.([]any)[1:last], "the same ticket, the same holder")
	} else if _, is := first.(int64); !is {
		require.Equal(s.t, first, second)
	}
	return first
}

func (s fairScripts) acquire(owner, stale, ticket string) any {
	s.t.Helper()
	return s.twice(s.acquireCall(owner, "1", stale, ticket))
}

// wait makes an attempt that joins the queue, and returns the ticket.
func (s fairScripts) wait(owner string) string {
	s.t.Helper()
	reply, is := s.acquire(owner, s.stale, "").([]any)
	require.True(s.t, is, "in the queue")
	return reply[1].(string)
}

func (s fairScripts) release(owner string, count int, waiting string) any {
	s.t.Helper()
	return s.twice(s.releaseCall(owner, count, waiting))
}

func (s fairScripts) refresh(owners ...string) any {
	s.t.Helper()
	return s.twice(s.refreshCall(owners...))
}

// join is wait for one waiter of a crowd, sent once.
func (s fairScripts) join(owner string) {
	s.t.Helper()
	require.IsType(s.t, []any{}, s.once(s.acquireCall(owner, "1", "60000", "")))
}

// stranger puts the waiter of Redisson with that number at the end of the queue.
func (s fairScripts) stranger(number int) string {
	s.t.Helper()
	owner, k := "99999999-9999-4999-8999-999999999999:"+strconv.Itoa(number), s.keys.FairKeys()
	until := time.Now().UnixMilli() + 30000 + int64(number)*300000
	require.NoError(s.t, s.do("RPUSH", k[1], owner).Error())
	require.NoError(s.t, s.do("ZADD", k[2], strconv.FormatInt(until, 10), owner).Error())
	return owner
}

// strangerAcquires removes the first waiter from the queue, as Redisson does.
func (s fairScripts) strangerAcquires(owner string) {
	s.t.Helper()
	k := s.keys.FairKeys()
	s.do("LPOP", k[1])
	s.do("ZREM", k[2], owner)
	for _, other := range s.state().queue {
		require.NoError(s.t, s.do("ZINCRBY", k[2], "-300000", other).Error())
	}
}

// deadline returns the time until Redisson gives up the owner.
func (s fairScripts) deadline(owner string) time.Duration {
	s.t.Helper()
	score, err := s.do("ZSCORE", s.keys.FairKeys()[2], owner).AsFloat64()
	require.NoError(s.t, err)
	return time.Duration(int64(score)-time.Now().UnixMilli()) * time.Millisecond
}

// life returns how long the owner counts as alive.
func (s fairScripts) life(owner string) time.Duration {
	s.t.Helper()
	_, until, _ := strings.Cut(testredis.HashOf(s.t, s.c, s.keys.FairKeys()[3])[owner], ":")
	ms, err := strconv.ParseInt(until, 10, 64)
	require.NoError(s.t, err)
	return time.Duration(ms-time.Now().UnixMilli()) * time.Millisecond
}

// age makes a waiter look as if its last sign of life were that much older.
func (s fairScripts) age(owner string, by time.Duration) {
	s.t.Helper()
	k := s.keys.FairKeys()
	until := time.Now().Add(s.life(owner) - by).UnixMilli()
	since, _, _ := strings.Cut(testredis.HashOf(s.t, s.c, k[3])[owner], ":")
	require.NoError(s.t, s.do("HSET", k[3], owner, since+":"+strconv.FormatInt(until, 10)).Error())
	require.NoError(s.t, s.do("ZINCRBY", k[2], strconv.FormatInt(-by.Milliseconds(), 10), owner).Error())
}

func TestFairScripts_sent_twice_count_once(t *testing.T) {
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	ticketB := s.wait(ownerB)
	ticketC := s.wait(ownerC)
	require.Less(t, ticketB, ticketC)
	refused := s.acquire(ownerC+"1", "", "").([]any)
	require.InDelta(t, 30000, refused[0], 4000, "one attempt: refused, not queued")
	require.Equal(t, ownerA, refused[1])
	state := s.state()
	require.Equal(t, map[string]string{ownerA: "1"}, state.lock)
	require.Equal(t, []string{ownerB, ownerC}, state.queue)
	require.Equal(t, map[string]string{ownerB: ticketB, ownerC: ticketC}, state.places)
	require.Equal(t, []any{int64(1), int64(1), int64(0)}, s.refresh(ownerB, ownerC, ownerA))

	require.Equal(t, int64(0), s.release(ownerA, 0, "0"))
	require.Equal(t, []any{int64(2), int64(1)}, s.refresh(ownerB, ownerC), "the first of a free lock is notified")
	require.IsType(t, []any{}, s.acquire(ownerC, s.stale, ticketC), "not its turn")
	require.Equal(t, int64(0), s.acquire(ownerC+"1", "", ""), "free, but others wait")
	require.Nil(t, s.acquire(ownerB, s.stale, ticketB))
	require.Equal(t, []string{ownerC}, s.state().queue)
	require.Nil(t, s.release(ownerC, 0, "1"), "it leaves the queue")
	require.Equal(t, int64(0), s.release(ownerB, 0, "0"))
	require.Equal(t, fairState{lock: map[string]string{}, queue: []string{}, places: map[string]string{}}, s.state())
}

// No script writes any deadline but that of its own waiter. Redisson would move all of them.
func TestFairScripts_touch_nobody_else(t *testing.T) {
	s := newFairScripts(t)
	deadline := func(owner string) string {
		score, err := s.do("ZSCORE", s.keys.FairKeys()[2], owner).ToString()
		require.NoError(t, err)
		return score
	}
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	ticketB := s.wait(ownerB)
	s.wait(ownerC)
	before := deadline(ownerC)
	s.wait(ownerC + "1")
	s.release(ownerC+"1", 0, "1")
	s.release(ownerA, 0, "0")
	require.Nil(t, s.acquire(ownerB, s.stale, ticketB))
	s.release(ownerB, 0, "0")
	require.Equal(t, before, deadline(ownerC))
}

func TestFairScripts_late_copies_do_no_lasting_harm(t *testing.T) {
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	ticket := s.wait(ownerB)
	require.Equal(t, int64(0), s.release(ownerA, 0, "0"))
	require.Nil(t, s.acquire(ownerB, s.stale, ticket))
	require.Nil(t, s.release(ownerA, 0, "1"), "a late copy of the release")
	require.Equal(t, []any{int64(0)}, s.refresh(ownerB), "a late refresh gives no place")
	require.Equal(t, fairState{lock: map[string]string{ownerB: "1"}, queue: []string{}, places: map[string]string{}}, s.state())
	require.IsType(t, []any{}, s.acquire(ownerA, s.stale, ""), "a late copy of an acquisition waits,")
	require.Nil(t, s.release(ownerA, 0, "1"), "and is undone")
	require.Empty(t, s.state().queue)
}

// In a long queue no script searches the middle: a waiter that leaves there is marked, loses its
// place, and is removed when its turn comes.
func TestFairScripts_leaver_in_the_middle(t *testing.T) {
	s := newFairScripts(t)
	s.stale = "60000" // the test may take longer than the default
	const around = 300
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	first := s.wait(ownerB)
	others := func(prefix string) {
		for i := range around {
			s.join(prefix + strconv.Itoa(i))
		}
	}
	others("44444444-4444-4444-8444-444444444444:")
	s.wait(ownerC)
	others("55555555-5555-4555-8555-555555555555:")
	s.release(ownerC, 0, "1")
	state := s.state()
	require.Len(t, state.queue, 2*around+2, "it is still queued")
	require.Contains(t, state.places[ownerC], "left")
	require.Equal(t, []any{int64(0)}, s.refresh(ownerC), "but has no place")

	s.do("LTRIM", s.keys.FairKeys()[1], strconv.Itoa(around+1), "-1") // its turn comes
	for i := range around {
		s.do("ZREM", s.keys.FairKeys()[2], "44444444-4444-4444-8444-444444444444:"+strconv.Itoa(i))
	}
	s.do("ZREM", s.keys.FairKeys()[2], ownerB)
	require.Equal(t, int64(0), s.release(ownerA, 0, "0"))
	state = s.state()
	require.Equal(t, "55555555-5555-4555-8555-555555555555:0", state.queue[0])
	require.NotContains(t, state.places, ownerC)
	require.NotEmpty(t, first)
}

// A waiter whose place is gone gets it back by its ticket, wherever the place was.
func TestFairScripts_lost_place_is_restored(t *testing.T) {
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	var owners, tickets []string
	for i := range 7 {
		owners = append(owners, "44444444-4444-4444-8444-444444444444:"+strconv.Itoa(i))
		tickets = append(tickets, s.wait(owners[i]))
	}
	for i, owner := range owners {
		s.do("LREM", s.keys.FairKeys()[1], "0", owner)
		s.do("ZREM", s.keys.FairKeys()[2], owner)
		require.Equal(t, []any{int64(0)}, s.refresh(owner), "it is notified")
		s.acquire(owner, s.stale, tickets[i])
		require.Equal(t, owners, s.state().queue)
	}
}

// Redisson subtracts its own wait timeout from every deadline when it acquires. A waiter of ours
// behind a waiter of Redisson still keeps its place. At the front, its deadline is what its sign of
// life says.
func TestFairScripts_deadlines_among_waiters_of_Redisson(t *testing.T) {
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	stranger := s.stranger(1)
	s.wait(ownerB)
	s.wait(ownerC)
	require.InDelta(t, 305*time.Second, s.deadline(ownerB), float64(4*time.Second))
	s.refresh(ownerB, ownerC)
	require.InDelta(t, 305*time.Second, s.deadline(ownerB), float64(4*time.Second), "it does not drift away")

	s.strangerAcquires(stranger)
	require.InDelta(t, 5*time.Second, s.deadline(ownerB), float64(4*time.Second), "it is not stale")
	require.Equal(t, []any{int64(1), int64(1)}, s.refresh(ownerB, ownerC))
	require.Equal(t, []string{ownerB, ownerC}, s.state().queue)
}

// Other notes do not count: a note of the waiter itself, or notes of waiters that Redisson has
// removed. Dead waiters of this library do not count either.
func TestFairScripts_deadline_counts_waiters_of_Redisson(t *testing.T) {
	leak := func(s fairScripts, owner string) { s.do("HSET", s.keys.FairKeys()[3], owner, "17:42") }
	leaks := func(s fairScripts) {
		for i := range 9 {
			leak(s, "44444444-4444-4444-8444-444444444444:"+strconv.Itoa(i))
		}
	}
	strangers := func(s fairScripts, from, to int) {
		for i := from; i <= to; i++ {
			s.stranger(i)
		}
	}
	for what, c := range map[string]struct {
		prepare   func(s fairScripts)
		strangers int
	}{
		"behind three":           {func(s fairScripts) { strangers(s, 1, 3) }, 3},
		"with a note of its own": {func(s fairScripts) { strangers(s, 1, 3); leak(s, ownerC) }, 3},
		"among leaked notes":     {func(s fairScripts) { strangers(s, 1, 3); leaks(s) }, 3},
		"behind one of ours":     {func(s fairScripts) { strangers(s, 1, 2); s.wait(ownerB); leaks(s) }, 2},
		"on both sides of ours":  {func(s fairScripts) { strangers(s, 1, 2); s.wait(ownerB); strangers(s, 3, 9) }, 9},
		"behind ours, in front":  {func(s fairScripts) { s.wait(ownerB); strangers(s, 1, 7) }, 7},
		"of whom one acquired": {func(s fairScripts) {
			first := s.stranger(1)
			strangers(s, 2, 3)
			s.wait(ownerB)
			strangers(s, 4, 4)
			s.strangerAcquires(first)
			s.do("DEL", s.keys.Key)
			s.acquire(ownerA, s.stale, "")
		}, 3},
		"more than are looked at": {func(s fairScripts) { s.wait(ownerB); strangers(s, 1, 300) }, 301},
	} {
		t.Run(what, func(t *testing.T) {
			s := newFairScripts(t)
			s.stale = "60000" // the test may take longer than the default
			require.Nil(t, s.acquire(ownerA, s.stale, ""))
			c.prepare(s)
			s.wait(ownerC)
			require.InDelta(t, time.Duration(c.strangers)*300*time.Second+60*time.Second, s.deadline(ownerC), float64(20*time.Second))
		})
	}
}

// A waiter that comes back to life in its place gets its full deadline back.
func TestFairScripts_revived_waiter_keeps_its_deadline(t *testing.T) {
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.stranger(1)
	ticket := s.wait(ownerB)
	s.age(ownerB, 100*time.Second)
	require.InDelta(t, 205*time.Second, s.deadline(ownerB), float64(4*time.Second))
	require.IsType(t, []any{}, s.acquire(ownerB, s.stale, ticket))
	require.InDelta(t, 305*time.Second, s.deadline(ownerB), float64(4*time.Second))
}

// A Redisson waiter counts its deadline from that of the last waiter. Dead waiters of this library
// do not stay at the end: they are removed when a waiter comes, leaves or is refreshed.
func TestFairScripts_no_dead_at_the_end(t *testing.T) {
	acts := map[string]func(s fairScripts){
		"who comes":   func(s fairScripts) { s.wait(ownerC); s.release(ownerC, 0, "1") },
		"who leaves":  func(s fairScripts) { s.release(ownerC, 0, "1") },
		"who is here": func(s fairScripts) { s.refresh(ownerB) },
	}
	for what, act := range acts {
		t.Run(what, func(t *testing.T) {
			s := newFairScripts(t)
			require.Nil(t, s.acquire(ownerA, s.stale, ""))
			s.wait(ownerB)
			for i := range 5 {
				dead := "44444444-4444-4444-8444-444444444444:" + strconv.Itoa(i)
				s.wait(dead)
				s.age(dead, 10*time.Minute)
			}
			act(s)
			state := s.state()
			require.Equal(t, []string{ownerB}, state.queue)
			require.Len(t, state.places, 1)
		})
	}
}

// A waiter that leaves the middle of the queue dies now, not earlier, and is removed once nobody is
// behind it.
func TestFairScripts_leaver_does_not_stay_at_the_end(t *testing.T) {
	s := newFairScripts(t)
	s.stale = "60000" // the test may take longer than the default
	const around = 300
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.stranger(1)
	others := func(from, to int) {
		for i := from; i < to; i++ {
			s.join("44444444-4444-4444-8444-444444444444:" + strconv.Itoa(i))
		}
	}
	others(0, around)
	s.wait(ownerC)
	others(around, 2*around)
	s.release(ownerC, 0, "1")
	require.InDelta(t, 300*time.Second, s.deadline(ownerC), float64(20*time.Second), "dies now, but for the stranger's wait")
	for i := around; i < 2*around; i++ {
		s.once(s.releaseCall("44444444-4444-4444-8444-444444444444:"+strconv.Itoa(i), 0, "1"))
	}
	state := s.state()
	require.Len(t, state.queue, around+1)
	require.NotContains(t, state.places, ownerC)
}

// Notes of waiters that Redisson has removed do not accumulate.
func TestFairScripts_leaked_notes_are_swept(t *testing.T) {
	s := newFairScripts(t)
	s.stale = "60000" // the test may take longer than the default
	notes := s.keys.FairKeys()[3]
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	const leaked, come = 50, 400
	for i := range leaked {
		s.do("HSET", notes, "55555555-5555-4555-8555-555555555555:"+strconv.Itoa(i), "17:42")
	}
	for i := range come {
		owner := "44444444-4444-4444-8444-444444444444:" + strconv.Itoa(i)
		s.join(owner)
		s.once(s.releaseCall(owner, 0, "1"))
	}
	for range leaked {
		s.once(s.refreshCall(ownerB))
	}
	require.Less(t, len(s.state().places), 10)
	s.do("HSET", notes, ownerC, "17:42")
	s.release(ownerB, 0, "1")
	require.Empty(t, s.state().places, "the last takes all with it")
}

// If the clock of the server is set back far, the life of a waiter is reset to what it would be, so
// that its death is noticed.
func TestFairScripts_clock_set_back(t *testing.T) {
	acts := map[string]func(s fairScripts, ticket string){
		"refreshed": func(s fairScripts, _ string) { s.refresh(ownerB) },
		"retries":   func(s fairScripts, ticket string) { s.acquire(ownerB, s.stale, ticket) },
	}
	for what, act := range acts {
		t.Run(what, func(t *testing.T) {
			s := newFairScripts(t)
			require.Nil(t, s.acquire(ownerA, s.stale, ""))
			s.stranger(1)
			ticket := s.wait(ownerB)
			s.age(ownerB, -40*time.Second)
			act(s, ticket)
			require.InDelta(t, 45*time.Second, s.life(ownerB), float64(4*time.Second), "a small step is waited for")
			s.age(ownerB, -time.Hour)
			act(s, ticket)
			require.InDelta(t, 5*time.Second, s.life(ownerB), float64(4*time.Second))
			require.InDelta(t, 305*time.Second, s.deadline(ownerB), float64(4*time.Second))
		})
	}
}

// A lock is free, and nobody in its long queue is alive: one attempt acquires it.
func TestFairScripts_one_attempt_passes_over_any_number_of_dead(t *testing.T) {
	s := newFairScripts(t)
	s.stale = "60000" // the test may take longer than the default
	k := s.keys.FairKeys()
	for what, stale := range map[string]string{"does not wait": "", "waits": s.stale} {
		for i := range 500 {
			dead := "44444444-4444-4444-8444-444444444444:" + strconv.Itoa(i)
			s.do("RPUSH", k[1], dead)
			s.do("ZADD", k[2], "42", dead)
			s.do("HSET", k[3], dead, "17:42")
		}
		require.Nil(t, s.acquire(ownerA, stale, ""), what)
		require.Empty(t, s.state().queue, what)
		require.Empty(t, s.state().places, what)
		s.do("DEL", k[0])
	}
}

// A live waiter behind many dead ones keeps its place.
func TestFairScripts_one_alive_behind_many_dead(t *testing.T) {
	s := newFairScripts(t)
	s.stale = "60000" // the test may take longer than the default
	k := s.keys.FairKeys()
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	for i := range 150 { // more than two calls remove
		dead := "44444444-4444-4444-8444-444444444444:" + strconv.Itoa(i)
		s.do("LPUSH", k[1], dead)
		s.do("ZADD", k[2], "42", dead)
		s.do("HSET", k[3], dead, "17:42")
	}
	s.do("DEL", k[0])
	for range 2 {
		require.Equal(t, int64(0), s.once(s.acquireCall(ownerC, "1", "", "")))
	}
	require.Equal(t, int64(0), s.acquire(ownerC, "", ""))
	require.Equal(t, []string{ownerB}, s.state().queue)
}

// The key of the lock has a wrong type: a release fails, but a waiter still leaves the queue.
func TestFairScripts_leaving_a_wrong_key(t *testing.T) {
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB)
	s.do("SET", s.keys.Key, "something else")
	for range 2 {
		reply := s.once(s.releaseCall(ownerB, 0, "1"))
		require.ErrorContains(t, reply.(error), "WRONGTYPE")
	}
	s.do("DEL", s.keys.Key)
	require.Equal(t, fairState{lock: map[string]string{}, queue: []string{}, places: map[string]string{}}, s.state())
}

// Waiters whose clocks are ten minutes fast or slow wait in the order in which they came, and none
// counts as dead.
func TestFairLock_skewed_clocks_change_nothing(t *testing.T) {
	t.Parallel()
	stale, rest := 10*time.Second, 100*time.Millisecond
	if !testing.Short() {
		stale, rest = 5*time.Second, 12*time.Second // several stale periods, to see that nothing happens
	}
	url := testredis.URL(t)
	c := skewed(t, url, stale, 0)
	name := testredis.UniqueName(t, (*core.Handle)(c).Parts())
	holder, err := c.NewFairLock(name).Lock(t.Context())
	require.NoError(t, err)
	inside := make(chan int, 6)
	for i := range 6 {
		skew := time.Duration(i%3-1) * 10 * time.Minute
		waiter := skewed(t, url, stale, skew)
		go func() {
			hold, err := waiter.NewFairLock(name).Lock(context.Background())
			if err == nil {
				inside <- i
				_ = hold.Unlock(context.Background())
			}
		}()
		require.Eventually(t, func() bool {
			list, err := c.NewFairLock(name).Waiters(t.Context())
			return err == nil && len(list) == i+1
		}, time.Minute, time.Millisecond)
	}
	time.Sleep(rest)   // nobody may be taken for dead meanwhile
	for i := range 3 { // each attempt removes the waiters that it takes for dead
		_, err := skewed(t, url, stale, time.Duration(i-1)*10*time.Minute).NewFairLock(name).TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	}
	require.NoError(t, holder.Unlock(t.Context()))
	for want := range 6 {
		require.Equal(t, want, <-inside)
	}
}

// skewed returns a client of the server at a URL, whose clocks are off by skew.
func skewed(t *testing.T, url string, stale, skew time.Duration) *latchkey.Client {
	t.Helper()
	c := testredis.NewEngineOf(t, url, func(s *testredis.Settings) {
		s.StaleWaiterTimeout = stale
		s.Clock = func() lease.Stamp {
			now := lease.SystemClock()
			return lease.Stamp{Mono: now.Mono + skew, Wall: now.Wall + skew}
		}
	})
	return (*latchkey.Client)(c.Handle)
}

// A waiter that never received its ticket cannot be restored by it when the notes are lost, but
// keeps its place ahead of later waiters.
func TestFairScripts_unknown_ticket_and_lost_notes(t *testing.T) {
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.wait(ownerB) // the answer is lost
	require.NoError(t, s.do("DEL", s.keys.FairKeys()[3]).Error())
	s.wait(ownerC)
	s.wait(ownerB)
	require.Equal(t, []string{ownerB, ownerC}, s.state().queue)
}
