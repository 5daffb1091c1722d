package main

import (
	"os"
	"os/exec"
	"time"
)

// groupPoll is how often endGroup checks whether a process group has processes left.
// There is no event for that, because the processes are not our children.
const groupPoll = 20 * time.Millisecond

// process is the command that runs behind a door, with the process group it leads.
type process struct {
	cmd      *exec.Cmd
	terminal *terminal
	stops    stops
	code     int           // exit code; may be read when ended is closed
	ended    chan struct{} // closed when the command has ended; its group may live on
}

// startProcess starts the command. It gives the command our own files, not pipes
// that copy them, so that terminals stay terminals, unless its output goes elsewhere.
func startProcess(argv, environment []string, stdout *os.File) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // signals end it, not a context
	cmd.Env = environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, os.Stderr
	p := &process{cmd: cmd, terminal: findTerminal(), stops: newStops(), ended: make(chan struct{})}
	front := p.terminal.isOurs()
	lead(cmd, p.terminal, front)
	if err := cmd.Start(); err != nil {
		if front {
			p.terminal.takeBack()
		}
		p.stops.release()
		return nil, err
	}
	go func() {
		p.code = p.await()
		p.terminal.takeBackFrom(p)
		p.stops.release()
		close(p.ended)
	}()
	return p, nil
}

// endGroup waits until the process group of a command that has ended is gone, and
// kills the processes that are left after grace.
func (p *process) endGroup(grace time.Duration) {
	for deadline := time.Now().Add(grace); p.groupLives(); time.Sleep(groupPoll) {
		if time.Now().After(deadline) {
			p.kill()
			return
		}
	}
}
