package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// A server is a Redis server without persistence that this program has started.
type server struct {
	addr    string
	dir     string
	command *exec.Cmd
	exited  chan struct{}
}

// startTries is how many ports are tried: another program may take a port that was free.
const startTries = 3

// startServer starts the server in PATH on a free port of the loopback interface.
func startServer(ctx context.Context) (*server, error) {
	program, err := serverProgram()
	if err != nil {
		return nil, err
	}
	for range startTries {
		var s *server
		if s, err = launch(ctx, program); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func serverProgram() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server is in PATH")
}

func launch(ctx context.Context, program string) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "latchkey-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{addr: net.JoinHostPort("127.0.0.1", port), dir: dir, exited: make(chan struct{})}
	s.command = exec.CommandContext(ctx, program, "--port", port, "--bind", "127.0.0.1", "--daemonize", "no",
		"--save", "", "--appendonly", "no", "--dir", dir, "--logfile", filepath.Join(dir, "log"))
	if err := s.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() {
		_ = s.command.Wait() // stop kills it, which is not a failure
		close(s.exited)
	}()
	if err := s.awaitAnswer(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func freePort(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return strconv.Itoa(port), listener.Close()
}

// awaitAnswer returns when the server accepts connections.
func (s *server) awaitAnswer(ctx context.Context) error {
	var dialer net.Dialer
	for range 250 {
		if conn, err := dialer.DialContext(ctx, "tcp", s.addr); err == nil {
			return conn.Close()
		}
		select {
		case <-s.exited:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%s exited: %s", s.command.Path, log)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not answer", s.command.Path)
}

// stop ends the server and removes its files.
func (s *server) stop() error {
	_ = s.command.Process.Kill() // an error means that it has ended
	<-s.exited
	return os.RemoveAll(s.dir)
}
