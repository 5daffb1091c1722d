package latchkey

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// An operation in doubt is not repeated when the server may have forgotten it.
func TestOps_in_doubt_are_given_up_in_time(t *testing.T) {
	c := newTestClient(t, Options{})
	var offset time.Duration
	c.clock = func() transport.Stamp {
		s := transport.SystemClock()
		return transport.Stamp{Mono: s.Mono + offset, Wall: s.Wall + offset}
	}
	s := c.NewSemaphore(uniqueName(t, c))
	_, err := s.TrySetPermits(t.Context(), 5)
	require.NoError(t, err)
	o := c.newOperation(s.key)
	o.followUp = call{semRelease, []string{s.key, s.secondKey, o.record, s.kindKey()}, []string{o.number, strconv.Itoa(1), "release", c.publish, s.channel}}
	require.Equal(t, int64(1), c.script(o.followUp.cmd, o.followUp.keys, o.followUp.args...))        // executed, its reply lost
	offset = 25 * time.Minute                                                                        // the server could not be reached
	require.NoError(t, c.rueidis.Do(t.Context(), c.rueidis.B().Del().Key(o.record).Build()).Error()) // the 20 minutes of the record are over
	require.True(t, c.undo.undoNow(o.undo), "it is given up")
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6, stats.Available, "released once")
}

// Undoing one permit of a joint acquisition undoes all of them.
func TestPermitScripts_one_mark_for_all(t *testing.T) {
	s := newSemScripts(t)
	s.setPermits(3, "try")
	mark := s.key + ":void:a"
	require.Nil(t, s.c.script(permitLeave, []string{s.key, s.ids, s.reserve, s.kind, mark}, "b", "whob", "PUBLISH", s.channel, "1000"))
	requireCode(t, s.permit([]string{"a", "b"}, "", ""), "LATCHKEY_PAST")
	s.counts(3, 0)
}

// The same is true while other permits of the acquisition are still held: a released permit does not come back.
func TestPermitScripts_one_mark_beside_held_ones(t *testing.T) {
	s := newSemScripts(t)
	s.setPermits(4, "try")
	require.Nil(t, s.permit([]string{"a", "b", "c"}, "", ""))
	mark := s.key + ":void:a"
	require.NotNil(t, s.c.script(permitLeave, []string{s.key, s.ids, s.reserve, s.kind, mark}, "b", "whob", "PUBLISH", s.channel, "1000"))
	requireCode(t, s.permit([]string{"a", "b", "c"}, "", ""), "LATCHKEY_PAST")
	s.counts(2, 2)
}

// A repetition acquires expired permits again, and restarts the lease of all of them.
func TestPermitScripts_repeated_late(t *testing.T) {
	s := newSemScripts(t)
	s.setPermits(4, "try")
	require.Nil(t, s.permit([]string{"a", "b", "c"}, "1000", ""))
	s.lapse("b")
	require.Equal(t, "R", s.release("c"))
	require.Nil(t, s.permit([]string{"a", "b", "c"}, "30000", ""))
	s.counts(1, 3)
	for _, id := range []string{"a", "b", "c"} {
		require.InDelta(t, 30000, s.twice(permitLease, []string{s.key, s.ids, s.kind}, id), 4000)
	}
}
