package fair_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/testredis"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// line puts waiters into the queue behind a holder: names of ours begin with G, names of Redisson's
// with J. It returns the tickets of ours.
func (s fairScripts) line(waiters ...string) map[string]string {
	s.t.Helper()
	require.Nil(s.t, s.acquire(ownerA, s.stale, ""))
	tickets := map[string]string{}
	for i, waiter := range waiters {
		if waiter[0] == 'J' {
			k, until := s.keys.FairKeys(), time.Now().Add(5*time.Minute).UnixMilli()
			s.do("RPUSH", k[1], waiter)
			s.do("ZADD", k[2], strconv.FormatInt(until, 10), waiter)
		} else {
			tickets[waiter] = s.wait(waiter)
		}
		require.Len(s.t, s.state().queue, i+1)
	}
	return tickets
}

// loses removes the place of a waiter, as Redisson does, and its note if note is true.
func (s fairScripts) loses(waiter string, note bool) {
	s.t.Helper()
	k := s.keys.FairKeys()
	s.do("LREM", k[1], "0", waiter)
	s.do("ZREM", k[2], waiter)
	if note {
		s.do("HDEL", k[3], waiter)
	}
}

// A waiter that lost its place gets it back ahead of every later waiter, even if waiters of
// Redisson, which have no tickets, are in between.
func TestFairScripts_place_among_waiters_of_Redisson(t *testing.T) {
	for _, queue := range []string{
		"G1 G2 J1 G3 J2", "G1 J1 J2 J3 G2 J4 J5 J6 J7 J8 G3", "G2 G1", "G1 J1", "J1 G1 J2 J3 G2", "G3 G1 J1 J2 J3 G2 G4",
	} {
		for _, note := range []bool{false, true} {
			t.Run(queue+" "+strconv.FormatBool(note), func(t *testing.T) {
				s := newFairScripts(t)
				waiters := strings.Fields(queue)
				ticket := s.line(waiters...)["G1"]
				s.loses("G1", note)
				require.IsType(t, []any{}, s.acquire("G1", s.stale, ticket))
				got := s.state().queue
				require.Equal(t, after(waiters, "G1"), after(got, "G1"), "%v", got)
			})
		}
	}
}

// after lists our waiters behind the given one.
func after(queue []string, waiter string) []string {
	behind, found := []string{}, false
	for _, each := range queue {
		if found && each[0] == 'G' {
			behind = append(behind, each)
		}
		found = found || each == waiter
	}
	return behind
}

// All notes are gone, and one waiter has lost its place as well. After all have tried again they
// are in the order of their tickets, no matter which tries first, and no waiter of Redisson has
// more of them ahead of it than before.
func TestFairScripts_order_after_an_eviction_of_the_notes(t *testing.T) {
	for _, order := range []string{"G1 G2 G3 G4", "G4 G3 G2 G1", "G3 G1 G4 G2", "G2 G4 G1 G3"} {
		t.Run(order, func(t *testing.T) {
			s := newFairScripts(t)
			tickets := s.line("G1", "G2", "J1", "G3", "G4")
			s.loses("G1", true)
			s.do("DEL", s.keys.FairKeys()[3])
			for _, waiter := range strings.Fields(order) {
				require.IsType(t, []any{}, s.acquire(waiter, s.stale, tickets[waiter]))
			}
			require.Equal(t, []string{"G1", "G2", "J1", "G3", "G4"}, s.state().queue)
		})
	}
}

// The notes are gone again before all waiters have tried. A waiter that came back at the end of the
// queue, for want of tickets, goes to the front when it tries once more.
func TestFairScripts_order_after_two_evictions_of_the_notes(t *testing.T) {
	for _, order := range []string{"G2 G3 G4 G1", "G4 G3 G2 G1", "G2 G1 G4 G3", "G1 G2 G3 G4"} {
		t.Run(order, func(t *testing.T) {
			s := newFairScripts(t)
			tickets := s.line("G1", "G2", "J1", "G3", "G4")
			s.loses("G1", true)
			s.do("DEL", s.keys.FairKeys()[3])
			require.IsType(t, []any{}, s.acquire("G1", s.stale, tickets["G1"]))
			s.do("DEL", s.keys.FairKeys()[3])
			for _, waiter := range strings.Fields(order) {
				require.IsType(t, []any{}, s.acquire(waiter, s.stale, tickets[waiter]))
			}
			require.Equal(t, []string{"G1", "G2", "J1", "G3", "G4"}, s.state().queue)
		})
	}
}

// A waiter that tries to acquire a free lock finds that a waiter with an earlier place is behind
// it. The earlier waiter moves to the front and gets a message.
func TestFairScripts_whoever_is_brought_to_the_front_is_notified(t *testing.T) {
	s := newFairScripts(t)
	tickets := s.line("G1", "G2")
	s.loses("G1", true)
	s.do("DEL", s.keys.FairKeys()[3])
	require.IsType(t, []any{}, s.acquire("G1", s.stale, tickets["G1"]))
	told := make(chan string, 10)
	link, release := s.c.Rueidis.Dedicate()
	defer release()
	link.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { told <- m.Message }})
	channel := link.B().Subscribe().Channel(s.keys.WaiterChannel("G1")).Build()
	require.NoError(t, link.Do(t.Context(), channel).Error())
	s.do("DEL", s.keys.Key)
	require.IsType(t, []any{}, s.acquire("G2", s.stale, tickets["G2"]))
	require.Equal(t, "0", <-told)
	require.Nil(t, s.acquire("G1", s.stale, tickets["G1"]))
}

// A waiter whose note was evicted is behind waiters of Redisson. Its deadline still allows for what
// they will subtract: at most what all waiters ahead of it can subtract.
func TestFairScripts_allowance_after_an_eviction_of_the_notes(t *testing.T) {
	s := newFairScripts(t)
	tickets := s.line("J1", "G1", "J2", "G2", "G3", "G4")
	k := s.keys.FairKeys()
	for range 3 {
		s.do("DEL", k[3])
		for _, waiter := range []string{"G1", "G2", "G3", "G4"} {
			s.do("ZADD", k[2], strconv.FormatInt(time.Now().Add(time.Second).UnixMilli(), 10), waiter)
			require.Equal(t, []any{int64(0)}, s.refresh(waiter), "it has to retry")
			require.IsType(t, []any{}, s.acquire(waiter, s.stale, tickets[waiter]))
		}
		for waiter, ahead := range map[string]int{"G1": 1, "G2": 2, "G3": 2, "G4": 2} {
			require.Greater(t, s.deadline(waiter), time.Duration(ahead)*300*time.Second, waiter)
			require.Less(t, s.deadline(waiter), 7*300*time.Second, waiter)
		}
	}
}

// An owner that has a deadline but no place in the queue goes with the queue, or earlier, when its
// time is over.
func TestFairScripts_deadline_without_a_place(t *testing.T) {
	const orphan = "55555555-5555-4555-8555-555555555555:1"
	ends := map[string]func(s fairScripts, ticket string){
		"the last releases": func(s fairScripts, ticket string) {
			s.do("DEL", s.keys.Key)
			defer s.once(s.releaseCall(ownerB, 0, "0"))
			require.Nil(s.t, s.once(s.acquireCall(ownerB, "1", s.stale, ticket)))
		},
		"the last leaves": func(s fairScripts, _ string) {
			s.once(s.releaseCall(ownerB, 0, "1"))
		},
		"its time is over": func(s fairScripts, _ string) {
			s.do("ZADD", s.keys.FairKeys()[2], "42", orphan)
			s.once(s.refreshCall(ownerB))
		},
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			s := newFairScripts(t)
			require.Nil(t, s.acquire(ownerA, s.stale, ""))
			ticket := s.wait(ownerB)
			s.do("ZADD", s.keys.FairKeys()[2], strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), orphan)
			end(s, ticket)
			require.True(t, rueidis.IsRedisNil(s.do("ZSCORE", s.keys.FairKeys()[2], orphan).Error()))
		})
	}
}

// A waiter leaves the middle of a queue whose notes were evicted. The note of its departure expires
// like all notes.
func TestFairScripts_notes_of_a_leaver_expire(t *testing.T) {
	s := newFairScripts(t)
	s.stale = "60000" // the test may take longer than the default
	k := s.keys.FairKeys()
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	for i := range 3 * 300 {
		owner := "44444444-4444-4444-8444-444444444444:" + strconv.Itoa(i)
		s.do("RPUSH", k[1], owner)
		s.do("ZADD", k[2], strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), owner)
	}
	s.release("44444444-4444-4444-8444-444444444444:450", 0, "1")
	require.Positive(t, testredis.PTTLOf(t, s.c, k[3]))
}

// The key of the tokens has a wrong type. An attempt that finds this changes nothing else: nobody
// enters, and nobody joins the queue.
func TestFairScripts_token_key_of_another_type(t *testing.T) {
	for what, spoil := range map[string][]string{
		"a list": {"RPUSH"}, "a text": {"SET"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newFairScripts(t)
			s.fenced = "1"
			acquire := func(owner, count, stale string) any { return s.once(s.acquireCall(owner, count, stale, "")) }
			require.NotNil(t, acquire(ownerA, "1", s.stale))
			s.do("DEL", s.keys.Token())
			s.do(append(spoil, s.keys.Token(), "x")...)
			before := s.state()
			require.Implements(t, (*error)(nil), acquire(ownerB, "1", s.stale))
			require.Equal(t, before, s.state(), "nobody joins")
			require.Implements(t, (*error)(nil), acquire(ownerA, "2", ""))
			require.Equal(t, before, s.state(), "nobody enters")
			s.do("DEL", s.keys.Key)
			before = s.state()
			require.Implements(t, (*error)(nil), acquire(ownerB, "1", s.stale))
			require.Equal(t, before, s.state(), "nobody acquires")
		})
	}
}

// Redis 6.2.0 to 6.2.4 answer HRANDFIELD of a missing key with null.
func TestFairScripts_HRANDFIELD_may_be_null(t *testing.T) {
	const older = `local redis = setmetatable({call = function(command, ...)
		local reply = redis.call(command, ...)
		return not (command == 'hrandfield' and #reply == 0) and reply
	end}, {__index = redis}) `
	s := newFairScripts(t)
	require.Nil(t, s.acquire(ownerA, s.stale, ""))
	s.stranger(1)
	c := s.acquireCall(ownerB, "1", s.stale, "")
	c.Cmd = transport.NewScript(older + c.Cmd.Text)
	require.IsType(t, []any{}, s.once(c))
}
