package nodes

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func steady(d *connTracker) bool {
	_, steady := d.look()
	return steady
}

// The answers of a connection may arrive after its end.
func TestConnTracker_answers_from_before_a_break_prove_nothing(t *testing.T) {
	d := &NewTopology(false, 1).common.connections
	require.True(t, steady(d))
	before, _ := d.look()
	d.broke()
	d.answered(before)
	require.False(t, steady(d))
	after, _ := d.look()
	d.answered(after)
	d.answered(before)
	require.True(t, steady(d))
}

// Every way in which a connection ends is noted before rueidis learns of it.
func TestConnTracker_notices_the_end_of_a_connection(t *testing.T) {
	for name, use := range map[string]func(net.Conn) error{
		"read":  func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"write": func(c net.Conn) error { _, err := c.Write([]byte{1}); return err },
		"close": func(c net.Conn) error { _ = c.Close(); return io.EOF },
	} {
		t.Run(name, func(t *testing.T) {
			d := &NewTopology(false, 1).common.connections
			here, there := net.Pipe()
			conn := d.watch(here)
			require.NoError(t, there.Close())
			require.Error(t, use(conn))
			require.False(t, steady(d))
			require.NoError(t, conn.Close())
			require.EqualValues(t, 1, d.breaks.Load(), "one end")
		})
	}
}

// Connections are replaced, but not again and again.
func TestConnTracker_replaces_connections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &NewTopology(false, 1).common.connections
		replaced := func() bool {
			here, there := net.Pipe()
			conn := d.watch(here)
			d.replace(errors.New("READONLY"))
			time.AfterFunc(time.Millisecond, func() { _ = there.Close() })
			_, err := conn.Read(make([]byte, 1))
			require.Error(t, err)
			require.NoError(t, conn.Close())
			return strings.Contains(err.Error(), "a server that answers: READONLY")
		}
		require.True(t, replaced())
		require.False(t, replaced(), "too soon")
		time.Sleep(replacePause) // connections are replaced once in that time
		require.True(t, replaced())
		require.Empty(t, d.open)
	})
}
