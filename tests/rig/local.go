package rig

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startPatience is how long a server may take to answer its first PING.
const startPatience = 30 * time.Second

// startTries is how often a start is tried, each time on other ports.
const startTries = 5

// localProcess is a redis-server or valkey-server that the rig started.
type localProcess struct {
	binary string
	dir    string
	port   int
	config string // name of a configuration in dir, if there is one
	args   []string
	leader []string // the setting that makes it a replica when it is restarted, or nil
	// A server that must not be visible before it is ready listens nowhere at first: prepare is
	// called before each start, and debut once the process runs.
	prepare, debut func() error

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd is reaped
	paused bool
}

// startLocal starts the server binary from PATH, without persistence, on a free
// loopback port.
func startLocal(settings []string) (*Server, error) {
	p, err := startSomewhere(settings)
	if err != nil {
		return nil, err
	}
	return p.server(), nil
}

// startSomewhere tries several ports: another process may take a free port before the server does.
func startSomewhere(settings []string) (p *localProcess, err error) {
	for range startTries {
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		if p, err = startAt(port, settings...); err == nil {
			return p, nil
		}
	}
	return nil, err
}

func startAt(port int, settings ...string) (*localProcess, error) {
	p, err := newProcess(port, settings...)
	if err != nil {
		return nil, err
	}
	if err := p.start(); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// newProcess returns a server that has not been started yet, with a directory of its own.
func newProcess(port int, settings ...string) (*localProcess, error) {
	binary := serverBinary()
	if binary == "" {
		return nil, errors.New("neither redis-server nor valkey-server is in PATH")
	}
	dir, err := newDir()
	if err != nil {
		return nil, err
	}
	return &localProcess{binary: binary, dir: dir, port: port, args: settings}, nil
}

// newDir makes a directory in memory if it can. Nodes of a cluster, Sentinels and replicas write to
// disk and wait for it before they answer: on a busy disk a failover would take ten times as long.
func newDir() (string, error) {
	const name = "latchkey-rig-"
	if dir, err := os.MkdirTemp("/dev/shm", name); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", name)
}

func (p *localProcess) server() *Server {
	return &Server{
		kind:    kindServer,
		detail:  fmt.Sprintf("%s on port %d", serverVersion(), p.port),
		url:     url.URL{Scheme: "redis", Host: p.addr()},
		able:    Private | Process | Stats | Settings | Topology | Single | Speed,
		process: p,
		stop:    p.remove,
	}
}

func (p *localProcess) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

func (p *localProcess) log() string { return filepath.Join(p.dir, "server.log") }

func (p *localProcess) commandLine() []string {
	var words []string
	if p.config != "" {
		words = append(words, filepath.Join(p.dir, p.config))
	}
	words = append(words,
		"--port", strconv.Itoa(p.port), "--bind", "127.0.0.1", "--dir", p.dir,
		"--save", "", "--appendonly", "no", "--logfile", p.log())
	return slices.Concat(words, p.args, p.leader)
}

// start launches the process and returns when it answers. It first removes what a replica received
// from its master, so that this does not come back.
func (p *localProcess) start() error {
	_ = os.Remove(filepath.Join(p.dir, "dump.rdb"))
	if err := p.launch(); err != nil {
		return err
	}
	err := called(p.debut)
	if err == nil {
		err = awaitPong(p.addr(), p.exited)
	}
	if err != nil {
		p.kill()
		text, _ := os.ReadFile(p.log())
		return fmt.Errorf("%w; the server's log: %s", err, text)
	}
	return nil
}

func (p *localProcess) launch() error {
	if err := called(p.prepare); err != nil {
		return err
	}
	p.cmd = exec.Command(p.binary, p.commandLine()...)
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.exited = make(chan struct{})
	go reap(p.cmd, p.exited)
	return nil
}

func called(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

// reap collects the process when it ends; how it ended does not matter.
func reap(cmd *exec.Cmd, exited chan<- struct{}) {
	_ = cmd.Wait()
	close(exited)
}

// write puts a file into the directory of the server.
func (p *localProcess) write(name, text string) error {
	return os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600)
}

// pause does nothing to a server that is already paused, which a failed test may leave behind,
// because nothing would report a second stop.
func (p *localProcess) pause(tb testing.TB) {
	tb.Helper()
	if !p.paused {
		freeze(tb, p.cmd.Process)
		p.paused = true
	}
}

func (p *localProcess) resume(tb testing.TB) {
	tb.Helper()
	p.paused = false
	thaw(tb, p.cmd.Process)
}

// ended reports whether the process is gone.
func (p *localProcess) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill ends the process, even if it is paused, and waits until it is gone.
func (p *localProcess) kill() {
	_ = p.cmd.Process.Kill() // fails only if it has already ended
	<-p.exited
	p.paused = false
}

func (p *localProcess) remove() {
	if p.exited != nil {
		p.kill()
	}
	_ = os.RemoveAll(p.dir)
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

// pong sends one PING. A reply that requires a password counts as well.
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
