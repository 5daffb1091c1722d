package transport

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Commands that overlap rarely wait for each other; those that overlap again and again do not.
func TestQuietTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, now := newQuietTurn(), Generation{}
		require.True(t, q.enter(now))
		time.AfterFunc(quietWait/2, q.leave)
		require.True(t, q.enter(now), "after the other")
		time.AfterFunc(quietWait/2, q.leave)
		require.False(t, q.enter(now), "the second that would have to wait")
		time.Sleep(time.Hour)
		require.False(t, q.enter(now), "nobody is under way, and the goroutines of rueidis live on")

		next := Generation{Here: 1, Anywhere: 1}
		require.True(t, q.enter(next), "another connection")
		start := time.Now()
		require.False(t, q.enter(next), "the first takes long")
		assert.Equal(t, quietWait, time.Since(start))
	})
}

// Nothing is sent on a connection that the server has closed, as long as nobody reads.
func TestClosedConnectionIsNoticedBeforeAWrite(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	far, err := listener.Accept()
	require.NoError(t, err)
	nothing := func() {}
	near := &watchedConn{Conn: conn, opened: nothing, broke: nothing, silence: newSilence(conn)}
	defer func() { _ = near.Close() }()
	write := func() error {
		require.NoError(t, near.SetDeadline(time.Now().Add(time.Minute)))
		_, err := near.Write([]byte("a"))
		return err
	}
	require.NoError(t, write())
	_, err = far.Write([]byte("b"))
	require.NoError(t, err)
	_, err = near.Read(make([]byte, 1))
	require.NoError(t, err)
	time.Sleep(2 * uncheckedFor) // nothing tells that it is idle
	require.NoError(t, write(), "the connection is up")
	_, err = far.Write([]byte("b"))
	require.NoError(t, err)
	_, err = near.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, far.(*net.TCPConn).CloseWrite())
	require.EventuallyWithT(t, func(t *assert.CollectT) { assert.ErrorIs(t, closedByPeer(conn), io.EOF) }, 10*time.Second, time.Millisecond)
	time.Sleep(2 * uncheckedFor)
	err = write()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, NotSent, Classify(err))
}

// What rueidis is given never has a deadline, at which it would close the connection of all.
func TestNoContextOfACommandHasADeadline(t *testing.T) {
	s := &Sender{CancelsPromptly: true, Patience: time.Second, Topology: NewTopology(false, 1)}
	s.Topology.quietPatience = time.Millisecond
	now := time.Now()
	soon, cancel := context.WithDeadline(context.Background(), now.Add(time.Second/2))
	defer cancel()
	ends, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"endless": context.Background(), "cancelable": ends, "deadline": soon} {
		for _, loose := range []bool{false, true} {
			end := limit{now.Add(time.Second), loose}
			if within := s.direct(ctx, false, end); within != nil {
				_, has := within.Deadline()
				assert.False(t, has, name)
			}
			if within := s.direct(ctx, true, end); within != nil {
				assert.Nil(t, within.Done(), name)
				assert.Nil(t, ctx.Done(), "%s: a caller that can leave does not read", name)
			}
		}
	}
	assert.Nil(t, s.direct(context.Background(), true, limit{at: now}), "too little time to wait for a silent server")
}

// A deadline is not set for each command, and never to an earlier time than it is told.
func TestDeadlineIsMovedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := watched(t)
		const timeout = time.Second
		for range 100 {
			require.NoError(t, near.SetDeadline(time.Now().Add(timeout)))
			time.Sleep(deadlineSlack / 5)
		}
		last := time.Now()
		require.NoError(t, near.SetDeadline(last.Add(timeout)))
		_, err := near.Read(make([]byte, 1))
		require.Error(t, err)
		took := time.Since(last)
		assert.GreaterOrEqual(t, took, timeout)
		assert.LessOrEqual(t, took, timeout+deadlineSlack)
	})
}
