package semaphore_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// newPermitScripts drives a semaphore that nobody has set.
func newPermitScripts(t *testing.T) fairPermitScripts {
	t.Helper()
	s := newFairPermitScripts(t, 0)
	s.do("DEL", s.key)
	return s
}

// idsOf returns the ids of an entry, as bytes.
func idsOf(entry string) (ids []string) {
	for _, id := range identity.GroupOf(entry[37:]) {
		ids = append(ids, identity.RawID(id))
	}
	return ids
}

func (s fairPermitScripts) marked(entry string) []string {
	return append(s.lock.Names.FairPermitKeys(), s.key+":void:"+entry)
}

// permit makes a single attempt.
func (s fairPermitScripts) permit(entry, lease string) any {
	s.t.Helper()
	keys := s.lock.Names.FairPermitKeys()
	if lease == "" {
		keys = s.marked(entry)
	}
	return s.pause(s.twice(script.PermitAcquire, keys, entry, lease, "", "", "", "", "PUBLISH", s.channel, "latchkey:{", "}", "0"))
}

// giveBack gives back one permit.
func (s fairPermitScripts) giveBack(id string) any {
	s.t.Helper()
	return s.twice(script.PermitLeave, s.lock.Names.FairPermitKeys(), s.serving(id, "", "")...)
}

// served are the keys of a script that serves the queue after an operation that counts once.
func (s fairPermitScripts) served() []string {
	return append([]string{s.key, s.ids, s.note(1), s.kind}, s.lock.Names.FairPermitKeys()[2:5]...)
}

// serving are the arguments of a script that serves the queue: its own, and how it tells waiters.
func (s fairPermitScripts) serving(own ...string) []string {
	return append(own, "PUBLISH", s.channel, "latchkey:{", "}", "0", line.PresenceChannel(s.key))
}

func (s fairPermitScripts) release(ids ...string) any {
	s.t.Helper()
	return s.twice(script.PermitRelease, s.served(), append(s.serving(s.number()), ids...)...)
}

func (s fairPermitScripts) setPermits(n int, how string) any {
	s.t.Helper()
	return s.twice(script.PermitSet, s.served(), s.serving(s.number(), strconv.Itoa(n), how, "")...)
}

// lapse ends the lease of a permit.
func (s fairPermitScripts) lapse(id string) { s.do("ZADD", s.ids, "1000", id) }

func (s fairPermitScripts) counts(free, held int64) {
	s.t.Helper()
	found := s.twice(script.Look, s.lock.Names.LookKeys(), "NUMSUB", "65", "1").([]any)[0].([]any)
	number, err := strconv.ParseInt(found[3].([]any)[0].(string), 10, 64)
	require.NoError(s.t, err)
	over := found[9].(int64)
	require.Equal(s.t, []any{free, held, int64(-1)}, []any{number + over, found[8], found[1]})
}

func TestPermitScripts(t *testing.T) {
	s := newPermitScripts(t)
	requireCode(t, s.permit(s.entry(1), "30000"), "LATCHKEY_UNSET")
	require.Equal(t, int64(1), s.setPermits(4, "try"))
	require.Equal(t, int64(0), s.setPermits(9, "try"))
	two, one := s.entry(2), s.entry(1)
	require.Nil(t, s.permit(two, "30000"))
	require.Nil(t, s.permit(one, ""))
	s.counts(1, 3)
	require.InDelta(t, 30000, s.permit(s.entry(2), "30000"), 4000, "until the next lease ends")
	ab, c := idsOf(two), idsOf(one)[0]
	require.Equal(t, "RU", s.release(ab[0], "x"))
	require.Equal(t, int64(0), s.giveBack(ab[1]))
	require.Nil(t, s.giveBack("x"), "unknown")
	s.counts(3, 1)
	require.Equal(t, int64(1), s.setPermits(0, "set"))
	s.counts(-1, 1)
	require.Equal(t, int64(1), s.setPermits(2, "add"))
	s.counts(1, 1)
	require.Equal(t, []any{int64(1), int64(0)}, s.twice(script.PermitRenew, []string{s.ids, s.ids}, c, "30000", "x", "30000"))
	require.Equal(t, int64(-1), s.twice(script.PermitLease, []string{s.key, s.ids, s.kind}, c), "a renewal never shortens")
}

// An expired permit is available, is put back once, and is not renewed.
func TestPermitScripts_expiry(t *testing.T) {
	s := newPermitScripts(t)
	s.setPermits(3, "try")
	three, two := s.entry(3), s.entry(2)
	abc, de := idsOf(three), idsOf(two)
	s.permit(three, "30000")
	s.lapse(abc[0])
	s.lapse(abc[1])
	s.counts(2, 1)
	require.Equal(t, []any{int64(0)}, s.twice(script.PermitRenew, []string{s.ids}, abc[0], "30000"))
	require.Equal(t, int64(0), s.twice(script.PermitUpdate, []string{s.key, s.ids, s.note(2), s.kind}, s.number(), abc[0], "30000", "PUBLISH", s.channel))
	require.Equal(t, "ER", s.release(abc[0], abc[2]))
	s.counts(3, 0)
	require.Nil(t, s.permit(two, "30000"))
	s.counts(1, 2)
	s.lapse(de[0])
	require.Nil(t, s.giveBack(de[0]), "it is given back, and was lost before")
	s.counts(2, 1)
}

// IDs that are left of a semaphore that is gone create no permits.
func TestPermitScripts_number_has_gone(t *testing.T) {
	s := newPermitScripts(t)
	s.setPermits(3, "try")
	two := s.entry(2)
	s.permit(two, "30000")
	s.do("DEL", s.key)
	requireCode(t, s.permit(s.entry(1), "30000"), "LATCHKEY_UNSET")
	require.Equal(t, int64(1), s.setPermits(3, "try"))
	s.counts(1, 2)
	require.Equal(t, "RR", s.release(idsOf(two)...))
	s.counts(3, 0)
}

// Undoing one permit of a joint acquisition without an end undoes all of them, also while others
// are still held: a released permit does not come back.
func TestPermitScripts_one_mark_for_all(t *testing.T) {
	s := newPermitScripts(t)
	s.setPermits(4, "try")
	for _, held := range []bool{false, true} {
		three := s.entry(3)
		if held {
			require.Nil(t, s.permit(three, ""))
		}
		left := testredis.RunScript(s.c, script.PermitLeave, s.marked(three), s.serving(idsOf(three)[1], "", "1000")...)
		require.Equal(t, held, left != nil)
		requireCode(t, s.permit(three, ""), "LATCHKEY_PAST")
	}
	s.counts(2, 2)
}

// A repetition acquires expired permits again, and restarts the lease of all of them.
func TestPermitScripts_repeated_late(t *testing.T) {
	s := newPermitScripts(t)
	s.setPermits(4, "try")
	three := s.entry(3)
	abc := idsOf(three)
	require.Nil(t, s.permit(three, "1000"))
	s.lapse(abc[1])
	require.Equal(t, "R", s.release(abc[2]))
	require.Nil(t, s.permit(three, "30000"))
	s.counts(1, 3)
	for _, id := range abc {
		require.InDelta(t, 30000, s.twice(script.PermitLease, []string{s.key, s.ids, s.kind}, id), 4000)
	}
}

// New permits go to those in the queue, in their order, and permits that are given back by their
// ids do too. A waiter keeps its place while there are none at all.
func TestPermitScripts_serve(t *testing.T) {
	s := newPermitScripts(t)
	require.Equal(t, int64(1), s.setPermits(0, "try"))
	a, b, c := s.entry(2), s.entry(1), s.entry(1)
	for _, each := range []string{a, b, c} {
		require.Len(t, s.acquire(each, "5000", "", "5000"), 5)
	}
	require.Equal(t, []string{a, b, c}, s.queue())
	require.Equal(t, int64(1), s.setPermits(3, "set"))
	require.Equal(t, []string{c}, s.queue())
	s.counts(0, 3)
	require.Equal(t, "R", s.release(idsOf(b)...))
	require.Empty(t, s.queue())
	s.counts(0, 3)
}

// Permits are given back although a key beside them is another kind of object.
func TestPermitScripts_other_kind_beside_the_permits(t *testing.T) {
	s := newPermitScripts(t)
	s.setPermits(3, "try")
	two := s.entry(2)
	require.Nil(t, s.permit(two, "30000"))
	s.do("SADD", s.lock.Names.FairPermitKeys()[4], "x") // the leases of grants
	requireCode(t, testredis.RunScript(s.c, script.PermitLeave, s.lock.Names.FairPermitKeys(), s.serving("", two, "")...), "WRONGTYPE")
	s.counts(3, 0)
}
