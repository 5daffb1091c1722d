package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echo starts a server that sends back the bytes that it receives.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func overLink(t *testing.T, delay time.Duration) net.Conn {
	t.Helper()
	l, err := startLink(t.Context(), echo(t), delay)
	require.NoError(t, err)
	t.Cleanup(l.stop)
	conn, err := net.Dial("tcp", l.addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	return conn
}

func TestLinkDelaysBothDirections(t *testing.T) {
	t.Parallel()
	const delay = 20 * time.Millisecond
	conn := overLink(t, delay)
	for range 3 {
		start := time.Now()
		_, err := conn.Write([]byte{1})
		require.NoError(t, err)
		_, err = io.ReadFull(conn, make([]byte, 1))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 2*delay)
	}
}

// A hundred messages that are sent 1 ms apart are all in flight at once: together they take little
// longer than one message, and not a hundred round trips.
func TestLinkPipelines(t *testing.T) {
	t.Parallel()
	const delay, messages = 200 * time.Millisecond, 100
	conn := overLink(t, delay)
	start := time.Now()
	go func() {
		for i := range messages {
			_, _ = conn.Write([]byte{byte(i)}) // a failure shows at the reader
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := io.ReadFull(conn, make([]byte, messages))
	require.NoError(t, err)
	assert.Less(t, time.Since(start), messages*delay)
}

func TestLinkKeepsTheOrder(t *testing.T) {
	t.Parallel()
	conn := overLink(t, time.Millisecond)
	var want []byte
	for i := range uint32(100_000) {
		want = binary.BigEndian.AppendUint32(want, i)
	}
	go func() {
		_, _ = io.Copy(conn, bytes.NewReader(want)) // a failure shows at the reader
	}()
	got := make([]byte, len(want))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
}

func TestLinkEndsWithItsClient(t *testing.T) {
	t.Parallel()
	conn := overLink(t, time.Millisecond)
	_, err := conn.Write([]byte{1})
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, []byte{1}, got)
}
