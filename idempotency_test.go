package latchkey

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// An operation in doubt is not repeated when the server may have forgotten it.
func TestOps_in_doubt_are_given_up_in_time(t *testing.T) {
	var offset atomic.Int64
	c := newTestClient(t, Options{clock: func() lease.Stamp {
		return lease.SystemClock().Before(-time.Duration(offset.Load()))
	}})
	s := c.NewSemaphore(uniqueName(t, c))
	_, err := s.TrySetPermits(t.Context(), 5)
	require.NoError(t, err)
	in := &s.inside
	o := c.engine().Sessions.Begin(in.Names.Key)
	o.FollowUp = script.NewCall(script.SemRelease, []string{in.Names.Key, in.SecondKey, o.Record, in.KindKey()}, o.Number, strconv.Itoa(1), "release", c.engine().Publish, in.Names.Channel)
	require.Equal(t, int64(1), runScript(c.engine(), o.FollowUp.Cmd, o.FollowUp.Keys, o.FollowUp.Args...))             // executed, its reply lost
	offset.Store(int64(25 * time.Minute))                                                                              // the server could not be reached
	require.NoError(t, c.engine().Rueidis.Do(t.Context(), c.engine().Rueidis.B().Del().Key(o.Record).Build()).Error()) // the 20 minutes of the record are over
	require.True(t, c.engine().Undo.Now(o.Undo), "it is given up")
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6, stats.Available, "released once")
}
