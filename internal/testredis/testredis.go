// Package testredis has the servers for the tests of this module, and the inside of clients that
// use them. A program that uses the module requires whatever the tests of the module import. So
// embedded servers run in a process of their own, whose program belongs to another module of the
// workspace, tests/testredis.
package testredis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is an embedded server. Its keys expire by the clock of the machine, until SetTime is
// called.
type Server struct{ address string }

// Start starts a server. It runs until Close, or until the test binary exits.
func Start() (*Server, error) {
	address, err := order("start")
	if err != nil {
		return nil, fmt.Errorf("starting an embedded server: %w", err)
	}
	return &Server{address}, nil
}

// Run is Start for a test, which closes the server at its end.
func Run(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Addr returns host and port.
func (s *Server) Addr() string { return s.address }

// URL returns the address for latchkey.Connect.
func (s *Server) URL() string { return "redis://" + s.address }

// SetTime stops the clock of the server at t, with a precision of a µs, and removes the keys that
// have expired by then.
func (s *Server) SetTime(t time.Time) {
	if _, err := order("time", s.address, t.UnixMicro()); err != nil {
		panic(err)
	}
}

// Close stops the server. Only the first call has an effect.
func (s *Server) Close() { _, _ = order("stop", s.address) }

// process is the process of the servers.
type process struct {
	orders  io.Writer
	answers *bufio.Reader
}

// idle has the process while no order is on the way to it. The first call starts it.
var idle = sync.OnceValues(func() (chan *process, error) {
	command := exec.CommandContext(context.Background(), "go", "run", "github.com/latchkey-go/latchkey/tests/testredis")
	command.Stderr = os.Stderr
	orders, err := command.StdinPipe() // which ends, and with it the process, when the test binary exits
	if err != nil {
		return nil, err
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	idle := make(chan *process, 1)
	idle <- &process{orders, bufio.NewReader(answers)}
	return idle, nil
})

// order gives the process an order, and returns its answer.
func order(words ...any) (string, error) {
	idle, err := idle()
	if err != nil {
		return "", err
	}
	p := <-idle
	defer func() { idle <- p }()
	if _, err := fmt.Fprintln(p.orders, words...); err != nil {
		return "", err
	}
	answer, err := p.answers.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the process of the servers has ended, it needs a clone with its go.work: %w", err)
	}
	answer = strings.TrimSpace(answer)
	if text, failed := strings.CutPrefix(answer, "error: "); failed {
		return "", errors.New(text)
	}
	return answer, nil
}
