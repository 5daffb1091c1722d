package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// The server has as many records for an object as operations were in flight on it at once, and no operation has the
// number of another.
func TestSessions_are_used_again(t *testing.T) {
	last := uint64(0)
	s := newSessions(newTestUndoer(lease.SystemClock), "me", func() uint64 { last++; return last }, nil)
	first, second, other := s.begin("a"), s.begin("a"), s.begin("b")
	require.NotEqual(t, first.record, second.record)
	require.NotEqual(t, first.record, other.record)
	first.done()
	third := s.begin("a")
	require.Equal(t, first.record, third.record)
	require.Equal(t, []string{"1", "2", "3", "4"}, []string{first.number, second.number, other.number, third.number})
	for _, each := range []*operation{second, third, other} {
		each.done()
	}
	require.Empty(t, s.busy)
}

// An operation in doubt is given up before the server may have forgotten it: nothing is sent, and its session is free.
func TestSessions_give_up_in_time(t *testing.T) {
	var now time.Duration
	var givenUp []string
	u := newTestUndoer(func() lease.Stamp { return lease.Stamp{Mono: now, Wall: now} })
	s := newSessions(u, "me", func() uint64 { return 1 }, func(record string) { givenUp = append(givenUp, record) })
	o := s.begin("a")
	now = opMemory - opMargin
	require.Equal(t, transport.Refused, o.Undo(context.Background(), nil))
	require.Equal(t, []string{o.record}, givenUp)
	require.Empty(t, s.busy)
}
