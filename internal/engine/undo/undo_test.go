package undo

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// owed is work to undo, with a server that answers as the test says.
type owed struct {
	sent    *atomic.Int32
	outcome outcome.Outcome
	answer  <-chan struct{} // closes when the server answers; nil: at once
}

func (o *owed) Undo(context.Context, <-chan struct{}) outcome.Outcome {
	o.sent.Add(1)
	if o.answer != nil {
		<-o.answer
	}
	return o.outcome
}

// newUndoer returns an undoer whose undos do not need a server.
func newUndoer(clock func() lease.Stamp) *Undoer {
	return New(&transport.Sender{Topology: nodes.NewTopology(false, 2*inFlight), Patience: time.Second}, clock)
}

// Close waits for what is in flight, not for everything that is owed: with a silent server, each
// item would take its time.
func TestUndo_close_does_not_send_everything(t *testing.T) {
	u := newUndoer(lease.SystemClock)
	var sent atomic.Int32
	const all = 8 * inFlight
	answer := make(chan struct{}) // the server is silent until it closes
	for range all {
		u.Add(&owed{&sent, outcome.Uncertain, answer}, Plan{Lease: time.Minute})
	}
	require.Eventually(t, func() bool { return sent.Load() > 0 }, time.Minute, time.Millisecond)
	before := sent.Load()
	closed := make(chan struct{})
	go func() { u.Close(t.Context()); close(closed) }()
	<-u.open.Done()
	close(answer)
	<-closed
	require.Less(t, sent.Load()-before, int32(all/4))
}

// While a server is silent, nothing is sent twice before everything was sent once, and the backlog
// is bounded.
func TestUndo_waits_for_a_silent_server_with_one_probe(t *testing.T) {
	u := newUndoer(lease.SystemClock)
	defer u.Close(t.Context())
	var sent atomic.Int32
	plan := Plan{Lease: time.Minute, Late: true, Generation: nodes.NoGeneration}
	u.Add(&owed{&sent, outcome.Uncertain, nil}, plan)
	require.Eventually(t, func() bool { return sent.Load() >= 1 }, time.Minute, time.Millisecond)
	for range longestBacklog + 1000 {
		u.Add(&owed{&sent, outcome.Uncertain, nil}, plan)
	}
	probes := sent.Load()
	require.Eventually(t, func() bool { return sent.Load() >= probes+3 }, time.Minute, time.Millisecond)
	u.mu.Lock()
	defer u.mu.Unlock()
	require.LessOrEqual(t, len(u.pending), longestBacklog+1)
}

// TestUndo_schedule checks the times at which the undo of an acquisition is repeated, by its lease.
func TestUndo_schedule(t *testing.T) {
	for length, commands := range map[time.Duration]int{
		100 * time.Millisecond: 3, time.Second: 3, 30 * time.Second: 3, time.Minute: 4, time.Hour: 5, lease.Longest: 5,
	} {
		var now time.Duration
		u := newUndoer(func() lease.Stamp { return lease.Stamp{Mono: now, Wall: now} })
		var sent atomic.Int32
		p := &owed{&sent, outcome.Answered, nil}
		u.Add(p, Plan{Delay: time.Hour, Lease: length, Late: true, Generation: nodes.NoGeneration})
		u.timer.Stop()
		start, last := u.pending[p].due, time.Duration(0)
		for u.pending[p] != nil {
			now = u.pending[p].due
			last = now - start
			u.attempt(u.planned.TakeFirst())
			u.timer.Stop()
		}
		require.EqualValues(t, commands, sent.Load(), "%v", length)
		require.Equal(t, min(length+lease.Margin(length), LateDelivery), last, "%v", length)
	}
}
