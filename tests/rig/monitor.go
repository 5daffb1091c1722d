package rig

import (
	"bufio"
	"cmp"
	"net"
	"slices"
	"strings"
	"time"
)

// Monitor records every command that clients send to a server, or to any master of a cluster, as
// MONITOR shows it. It leaves out commands that scripts execute.
type Monitor struct {
	tb    place
	admin *Admin
	taps  []*monitored
}

// monitored is the MONITOR of one server.
type monitored struct {
	tb    place
	conn  net.Conn
	lines *bufio.Reader
}

// seen is a command with the server's time.
type seen struct{ at, command string }

// Watch starts recording.
func (a *Admin) Watch() *Monitor {
	a.tb.Helper()
	m := &Monitor{tb: a.tb, admin: a}
	for _, addr := range a.server.ends()[:max(a.server.masters, 1)] {
		m.taps = append(m.taps, a.watch(addr))
	}
	return m
}

func (a *Admin) watch(addr string) *monitored {
	a.tb.Helper()
	conn, err := net.Dial("tcp", addr)
	a.check(err)
	a.tb.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	a.check(err)
	m := &monitored{tb: a.tb, conn: conn, lines: bufio.NewReader(conn)}
	if ok, err := m.line(); err != nil || ok != "+OK" {
		a.tb.Fatalf("rig: MONITOR: %s, %v", ok, err)
	}
	return m
}

// Stop returns the recorded commands, oldest first, each as the server prints it: "SET" "key"
// "value".
func (m *Monitor) Stop() []string {
	m.tb.Helper()
	const marker = "latchkey-rig-end-of-record"
	m.admin.Do("ECHO", marker)
	var all []seen
	for _, tap := range m.taps {
		all = append(all, tap.until(marker)...)
	}
	slices.SortStableFunc(all, func(a, b seen) int { return cmp.Compare(a.at, b.at) })
	commands := make([]string, len(all))
	for i, s := range all {
		commands[i] = s.command
	}
	return commands
}

// until reads the commands that were recorded before a marker.
func (m *monitored) until(marker string) (commands []seen) {
	m.tb.Helper()
	for {
		line, err := m.line()
		// +1700000000.000000 [0 127.0.0.1:1234] "SET" "key" "value"
		origin, command, found := strings.Cut(line, "] ")
		switch {
		case err != nil:
			m.tb.Fatalf("rig: MONITOR: %v", err)
			return commands
		case !found || strings.HasSuffix(origin, " lua"):
		case strings.Contains(command, marker):
			_ = m.conn.Close()
			return commands
		default:
			at, _, _ := strings.Cut(origin, " ")
			commands = append(commands, seen{at, command})
		}
	}
}

func (m *monitored) line() (string, error) {
	_ = m.conn.SetReadDeadline(time.Now().Add(adminPatience))
	line, err := m.lines.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}
