package main

import (
	"os"
	"os/exec"
	"time"
)

// groupPoll is how often a group is asked whether anybody is left in it. No
// event tells: they are not our children.
const groupPoll = 20 * time.Millisecond

// process is the command that runs behind a door, with the group it leads.
type process struct {
	cmd      *exec.Cmd
	terminal *terminal
	stops    stops
	code     int           // how it ended; may be read when ended is closed
	ended    chan struct{} // closed when the command has ended, not its group
}

// startProcess gives the command our own files, not copies of what passes
// through them, so that terminals stay terminals.
func startProcess(argv, environment []string) (*process, error) {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // its end is a matter of signals, not of contexts
	cmd.Env = environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
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

// endGroup waits until the children of a command that has ended are gone too,
// and kills those that are still there when grace is over.
func (p *process) endGroup(grace time.Duration) {
	for deadline := time.Now().Add(grace); p.groupLives(); time.Sleep(groupPoll) {
		if time.Now().After(deadline) {
			p.kill()
			return
		}
	}
}
