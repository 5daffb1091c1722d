package undo

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// The server has as many records for an object as operations were in flight on it at once, and no
// operation has the number of another.
func TestSessions_are_used_again(t *testing.T) {
	last := uint64(0)
	s := NewSessions(newUndoer(lease.SystemClock), "me", func() uint64 { last++; return last }, nil)
	first, second, other := s.Begin("a"), s.Begin("a"), s.Begin("b")
	require.NotEqual(t, first.Record, second.Record)
	require.NotEqual(t, first.Record, other.Record)
	first.Done()
	third := s.Begin("a")
	require.Equal(t, first.Record, third.Record)
	require.Equal(t, []string{"1", "2", "3", "4"}, []string{first.Number, second.Number, other.Number, third.Number})
	for _, each := range []*Operation{second, third, other} {
		each.Done()
	}
	require.Empty(t, s.busy)
}

// An operation in doubt is given up before the server may have forgotten it: nothing is sent, and
// its session is free.
func TestSessions_give_up_in_time(t *testing.T) {
	var now time.Duration
	var givenUp []string
	u := newUndoer(func() lease.Stamp { return lease.Stamp{Mono: now, Wall: now} })
	s := NewSessions(u, "me", func() uint64 { return 1 }, func(record string) { givenUp = append(givenUp, record) })
	o := s.Begin("a")
	now = Memory - margin
	require.Equal(t, outcome.Refused, o.Undo(context.Background(), nil))
	require.Equal(t, []string{o.Record}, givenUp)
	require.Empty(t, s.busy)
}
