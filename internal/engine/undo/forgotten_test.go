package undo_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
	"github.com/latchkey-go/latchkey/internal/testredis"
)

// An operation in doubt is not repeated when the server may have forgotten it.
func TestOps_in_doubt_are_given_up_in_time(t *testing.T) {
	var offset atomic.Int64
	c := testredis.NewEngine(t, func(s *testredis.Settings) {
		s.Clock = func() lease.Stamp { return lease.SystemClock().Before(-time.Duration(offset.Load())) }
	})
	s := semaphore.New(c, testredis.UniqueName(t, c))
	_, err := s.TrySet(t.Context(), 5, nil)
	require.NoError(t, err)
	o := c.Sessions.Begin(s.Names.Key)
	o.FollowUp = script.NewCall(script.SemRelease, []string{s.Names.Key, s.SecondKey, o.Record, s.KindKey()}, o.Number, strconv.Itoa(1), "release", c.Publish, s.Names.Channel)
	require.Equal(t, int64(1), testredis.RunScript(c, o.FollowUp.Cmd, o.FollowUp.Keys, o.FollowUp.Args...)) // executed, its reply lost
	offset.Store(int64(25 * time.Minute))                                                                   // the server could not be reached
	require.NoError(t, c.Rueidis.Do(t.Context(), c.Rueidis.B().Del().Key(o.Record).Build()).Error())        // the 20 minutes of the record are over
	require.True(t, c.Undo.Now(o.Undo), "it is given up")
	state, err := s.Inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, 6, state.Available, "released once")
}
