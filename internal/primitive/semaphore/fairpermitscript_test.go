package semaphore_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// fairPermitScripts drives one fair semaphore by its bare scripts.
type fairPermitScripts struct {
	*semScripts
	lock *acquire.Lock
}

func newFairPermitScripts(t *testing.T, permits int) fairPermitScripts {
	t.Helper()
	s := newSemScripts(t)
	lock := semaphore.NewFairPool(s.c, s.key).Permits
	s.do("SET", s.key, strconv.Itoa(permits))
	return fairPermitScripts{s, lock}
}

func (s *semScripts) do(words ...string) any {
	s.t.Helper()
	reply, err := s.c.Rueidis.Do(s.t.Context(), s.c.Rueidis.B().Arbitrary(words...).Build()).ToAny()
	require.NoError(s.t, err)
	return reply
}

// entry returns the entry of a waiter for n permits.
func (s fairPermitScripts) entry(n int) string {
	return semClient + ":" + identity.NewPermitIDs(s.c.ID, s.c.Number(), n)[0]
}

func (s fairPermitScripts) acquire(entry, stale, ticket, grant string) any {
	return testredis.RunScript(s.c, script.PermitAcquire, s.lock.Names.FairPermitKeys(), entry, "30000", stale, ticket, grant, "",
		"PUBLISH", s.lock.Names.Channel, "latchkey:{", "}", "0")
}

func (s fairPermitScripts) queue() []string {
	s.t.Helper()
	var all []string
	for _, each := range s.do("ZRANGE", s.lock.Names.FairPermitKeys()[2], "0", "-1").([]any) {
		all = append(all, each.(string))
	}
	return all
}

// leave gives up an acquisition, or returns its permits one by one.
func (s fairPermitScripts) leave(id, entry string) any {
	if id != "" {
		id = identity.RawID(id)
	}
	return testredis.RunScript(s.c, script.PermitLeave, s.lock.Names.FairPermitKeys(), s.serving(id, entry, "")...)
}

func (s fairPermitScripts) held() int { return len(s.state().ids) }

// Each script may be executed twice, and late.
func TestFairPermitScripts_twice(t *testing.T) {
	s := newFairPermitScripts(t, 3)
	a, b, c := s.entry(3), s.entry(2), s.entry(1)
	for range 2 {
		require.Nil(t, s.acquire(a, "5000", "", "5000"))
		require.Equal(t, 3, s.held())
	}
	first := s.acquire(b, "5000", "", "5000").([]any)
	for range 2 {
		require.Equal(t, first[1:], s.acquire(b, "5000", first[3].(string), "5000").([]any)[1:])
		require.Len(t, s.acquire(c, "", "", ""), 3, "it does not wait")
		require.Equal(t, []string{b}, s.queue())
	}
	s.acquire(c, "5000", "", "5000")
	for _, id := range identity.GroupOf(a[37:]) {
		require.NotNil(t, s.leave(id, ""))
		require.Nil(t, s.leave(id, ""), "the second time")
	}
	require.Equal(t, 3, s.held(), "both that waited have theirs")
	require.Equal(t, "0", s.state().free)
	for range 2 {
		require.Nil(t, s.acquire(b, "5000", first[3].(string), "5000"), "it finds out")
		require.Equal(t, 3, s.held())
	}
	require.NotNil(t, s.leave("", b))
	require.Nil(t, s.leave("", b))
	require.Equal(t, "2", s.state().free)
	require.NotNil(t, s.leave("", c))
	require.Equal(t, "3", s.state().free)
	require.Empty(t, s.queue())
}

// A request for more permits than there are waits in the queue if nothing is free when the others
// have been served, and is told so.
func TestFairPermitScripts_more_than_there_are(t *testing.T) {
	s := newFairPermitScripts(t, 1)
	place := func(reply any) any { return reply.([]any)[4] }
	a, b, large := s.entry(1), s.entry(1), s.entry(2)
	refusal := s.acquire(large, "5000", "", "5000").([]any)
	require.Equal(t, int64(2), refusal[4], "a permit is free")
	ticket := refusal[3].(string)
	require.Nil(t, s.acquire(a, "5000", "", "5000"))
	s.acquire(b, "5000", "", "5000")
	s.do("ZINCRBY", s.ids, "-3600000", s.state().ids[0]) // its lease is over
	for range 2 {
		require.Equal(t, int64(0), place(s.acquire(large, "5000", ticket, "5000")), "b has it")
		require.Equal(t, []string{large}, s.queue())
	}
	s.leave(b[37:], "")
	require.Equal(t, int64(2), place(s.acquire(large, "5000", ticket, "5000")), "it is free again")
	require.Empty(t, s.queue())
}

// No damage to one of the three keys of a queue makes a script fail or loses a permit.
func TestFairPermitScripts_damage(t *testing.T) {
	for i := 2; i < 5; i++ {
		for _, replaced := range []bool{false, true} {
			s := newFairPermitScripts(t, 1)
			key := s.lock.Names.FairPermitKeys()[i]
			a, b, c := s.entry(1), s.entry(1), s.entry(1)
			require.Nil(t, s.acquire(a, "5000", "", "5000"))
			ticket := s.acquire(b, "5000", "", "5000").([]any)[3].(string)
			s.acquire(c, "5000", "", "5000")
			s.do("DEL", key)
			if replaced {
				s.do("SET", key, "something else")
				_, failed := s.acquire(b, "5000", ticket, "5000").(error)
				require.True(t, failed, "it says so")
				s.do("DEL", key)
			}
			s.acquire(b, "5000", ticket, "5000")
			s.acquire(c, "5000", "", "5000")
			require.Equal(t, b, s.queue()[0])
			s.leave(a[37:], "")
			s.acquire(b, "5000", ticket, "5000")
			require.Equal(t, 1, s.held())
			require.NotNil(t, s.leave(b[37:], ""))
			require.Nil(t, s.acquire(c, "5000", "", "5000"))
			s.leave(c[37:], "")
			require.Equal(t, "1", s.state().free)
		}
	}
}

// Many dead waiters are passed over, some in one call.
func TestFairPermitScripts_dead(t *testing.T) {
	s := newFairPermitScripts(t, 1)
	a := s.entry(1)
	require.Nil(t, s.acquire(a, "5000", "", "5000"))
	for range 300 {
		s.acquire(s.entry(1), "-1", "", "5000") // dead as soon as it arrives
	}
	b := s.entry(1)
	ticket := s.acquire(b, "5000", "", "5000").([]any)[3].(string)
	s.leave(a[37:], "")
	for range 5 {
		if s.acquire(b, "5000", ticket, "5000") == nil {
			break
		}
	}
	require.Equal(t, 1, s.held())
	require.Empty(t, s.queue())
	s.leave(b[37:], "")
	for range 300 {
		s.do("ZADD", s.lock.Names.FairPermitKeys()[2], "1", s.entry(1)) // its signs of life are lost
	}
	require.Nil(t, s.acquire(s.entry(1), "", "", ""), "nobody of them is alive")
	require.Empty(t, s.queue())
}

// At the turn of strangers, clients of this library are told to ignore the message, and the first
// in the queue has the permit after it.
func TestFairPermitScripts_strangers(t *testing.T) {
	s := newFairPermitScripts(t, 1)
	testredis.Hear(t, s.c, s.channel)
	told := testredis.Hear(t, s.c, line.PresenceChannel(s.key))
	announced := testredis.Hear(t, s.c, s.channel)
	for range 100 {
		a, b := s.entry(1), s.entry(1)
		require.Eventually(t, func() bool { return s.acquire(a, "", "", "") == nil }, 20*time.Second, time.Millisecond)
		ticket := s.acquire(b, "5000", "", "5000").([]any)[3].(string)
		theirs := s.leave(a[37:], "") == int64(2)
		require.Equal(t, theirs, s.held() == 0)
		require.Eventually(t, func() bool { return s.acquire(b, "5000", ticket, "5000") == nil }, 20*time.Second, time.Millisecond)
		if theirs {
			require.NotEmpty(t, <-told)
			require.NotEmpty(t, <-announced)
			return
		}
		s.leave(b[37:], "")
		for len(announced) > 0 {
			<-announced
		}
	}
	t.Fatal("strangers never had a turn")
}
