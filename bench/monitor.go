package main

import (
	"bufio"
	"context"
	"net"
	"strings"
	"time"
)

// A monitor uses the command MONITOR to count the commands that a server executes.
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
		conn.Close()
		return nil, err
	}
	m := &monitor{conn: conn, marker: marker, lines: bufio.NewReader(conn)}
	if _, err = conn.Write([]byte("MONITOR\r\n")); err == nil {
		_, err = m.lines.ReadString('\n')
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *monitor) close() {
	m.conn.Close()
	m.marker.Close()
}

// read returns how many commands clients have sent since the previous call, and how many commands
// scripts have called. PINGs do not count.
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

// quiet is like read, but returns only after no command has come for a while: the client may send
// commands in the background after the operation.
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
