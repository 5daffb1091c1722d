package rig

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startPatience is how long a server may take to answer its first PING.
const startPatience = 10 * time.Second

// localProcess is a redis-server or valkey-server that the rig started.
type localProcess struct {
	binary string
	dir    string
	port   int
	args   []string

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd is reaped
}

// startLocal starts the server binary from PATH, without persistence, on a free
// loopback port.
func startLocal(settings []string) (*Server, error) {
	binary := serverBinary()
	if binary == "" {
		return nil, errors.New("neither redis-server nor valkey-server is in PATH")
	}
	dir, err := os.MkdirTemp("", "latchkey-rig-")
	if err != nil {
		return nil, err
	}
	p := &localProcess{binary: binary, dir: dir, args: settings}
	if err := p.startSomewhere(); err != nil {
		p.remove()
		return nil, err
	}
	return p.server(), nil
}

func (p *localProcess) server() *Server {
	return &Server{
		kind:    kindServer,
		detail:  fmt.Sprintf("%s on port %d", filepath.Base(p.binary), p.port),
		url:     url.URL{Scheme: "redis", Host: p.addr()},
		able:    Private | Process | Stats | Settings | Speed,
		process: p,
		stop:    p.remove,
	}
}

// startSomewhere tries a few ports: between finding a free one and the server
// taking it, somebody else may be quicker.
func (p *localProcess) startSomewhere() (err error) {
	for range 5 {
		if p.port, err = freePort(); err != nil {
			return err
		}
		if err = p.start(); err == nil {
			return nil
		}
	}
	return err
}

func (p *localProcess) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

func (p *localProcess) log() string { return filepath.Join(p.dir, "server.log") }

func (p *localProcess) commandLine() []string {
	return append([]string{
		"--port", strconv.Itoa(p.port), "--bind", "127.0.0.1", "--dir", p.dir,
		"--save", "", "--appendonly", "no", "--logfile", p.log(),
	}, p.args...)
}

// start launches the process and returns when it answers.
func (p *localProcess) start() error {
	p.cmd = exec.Command(p.binary, p.commandLine()...)
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.exited = make(chan struct{})
	go reap(p.cmd, p.exited)
	if err := awaitPong(p.addr(), p.exited); err != nil {
		p.kill()
		text, _ := os.ReadFile(p.log())
		return fmt.Errorf("%w; the server's log: %s", err, text)
	}
	return nil
}

// reap collects the process when it ends; how it ended does not matter.
func reap(cmd *exec.Cmd, exited chan<- struct{}) {
	_ = cmd.Wait()
	close(exited)
}

func (p *localProcess) pause(tb testing.TB)  { tb.Helper(); p.signal(tb, syscall.SIGSTOP) }
func (p *localProcess) resume(tb testing.TB) { tb.Helper(); p.signal(tb, syscall.SIGCONT) }

func (p *localProcess) signal(tb testing.TB, signal os.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		tb.Fatalf("rig: %v to the server: %v", signal, err)
	}
}

// kill ends the process, also a paused one, and waits until it is gone.
func (p *localProcess) kill() {
	_ = p.cmd.Process.Kill() // an error only says that it has ended
	<-p.exited
}

func (p *localProcess) remove() {
	if p.exited != nil {
		p.kill()
	}
	_ = os.RemoveAll(p.dir)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// awaitPong polls until a server answers PING at addr, or its process has ended.
func awaitPong(addr string, exited <-chan struct{}) error {
	deadline := time.After(startPatience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if pong(addr) {
			return nil
		}
		select {
		case <-exited:
			return errors.New("the server ended at once")
		case <-deadline:
			return fmt.Errorf("no answer from %s within %v", addr, startPatience)
		case <-tick.C:
		}
	}
}

// pong asks once. An answer that asks for a password is an answer, too.
func pong(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	answer := make([]byte, 16)
	if _, err = conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, _ := conn.Read(answer)
	return strings.HasPrefix(string(answer[:n]), "+PONG") || strings.HasPrefix(string(answer[:n]), "-NOAUTH")
}
