package main

import (
	"bufio"
	"context"
	"net"
	"strings"
	"time"
)

// A monitor counts what a server executes, by its command MONITOR.
type monitor struct {
	conn, marker net.Conn
	lines        *bufio.Reader
}

func watch(ctx context.Context, addr string) (*monitor, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	marker, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn: conn, marker: marker, lines: bufio.NewReader(conn)}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return nil, err
	}
	_, err = m.lines.ReadString('\n')
	return m, err
}

func (m *monitor) close() {
	m.conn.Close()
	m.marker.Close()
}

// read returns how many commands clients have sent since the last call, and how many scripts have
// called. Keep-alives do not count.
func (m *monitor) read() (commands, calls int, err error) {
	if _, err := m.marker.Write([]byte("ECHO end-of-record\r\n")); err != nil {
		return 0, 0, err
	}
	for {
		line, err := m.lines.ReadString('\n')
		origin, command, _ := strings.Cut(line, "] ")
		switch {
		case err != nil:
			return 0, 0, err
		case strings.Contains(command, "end-of-record"):
			return commands, calls, nil
		case strings.HasSuffix(origin, " lua"):
			calls++
		case !strings.HasPrefix(command, `"PING"`):
			commands++
		}
	}
}

// quiet is read, once nothing has come for a while: the client may send more in the background, after the
// operation.
func (m *monitor) quiet() (commands, calls int, err error) {
	for idle := 0; idle < 3; idle++ {
		time.Sleep(10 * time.Millisecond)
		more, within, err := m.read()
		if err != nil {
			return 0, 0, err
		}
		if more > 0 {
			idle = 0
		}
		commands, calls = commands+more, calls+within
	}
	return commands, calls, nil
}
