package rig

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"
)

// Monitor records every command that clients send to a server, as its MONITOR
// shows them. What scripts execute is left out.
type Monitor struct {
	tb    testing.TB
	admin *Admin
	conn  net.Conn
	lines *bufio.Reader
}

// Watch starts recording.
func (a *Admin) Watch() *Monitor {
	a.tb.Helper()
	conn, err := net.Dial("tcp", a.server.Addr())
	a.check(err)
	a.tb.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	a.check(err)
	m := &Monitor{tb: a.tb, admin: a, conn: conn, lines: bufio.NewReader(conn)}
	if ok := m.line(); ok != "+OK" {
		a.tb.Fatalf("rig: MONITOR: %s", ok)
	}
	return m
}

// Stop returns what was recorded, oldest first, each command as the server
// prints it: "SET" "key" "value".
func (m *Monitor) Stop() []string {
	m.tb.Helper()
	const marker = "latchkey-rig-end-of-record"
	m.admin.Do("ECHO", marker)
	var commands []string
	for {
		// +1700000000.000000 [0 127.0.0.1:1234] "SET" "key" "value"
		origin, command, found := strings.Cut(m.line(), "] ")
		switch {
		case !found || strings.HasSuffix(origin, " lua"):
		case strings.Contains(command, marker):
			_ = m.conn.Close()
			return commands
		default:
			commands = append(commands, command)
		}
	}
}

func (m *Monitor) line() string {
	m.tb.Helper()
	_ = m.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	line, err := m.lines.ReadString('\n')
	if err != nil {
		m.tb.Fatalf("rig: MONITOR: %v", err)
	}
	return strings.TrimRight(line, "\r\n")
}
