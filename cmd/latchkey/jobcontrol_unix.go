//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopPatience is how long a program that has told itself to stop may go on. One that no shell could continue is
// not stopped by the kernel.
const stopPatience = time.Second

// terminal is the one on standard input. A nil terminal is none.
type terminal struct {
	fd    int
	group int // ours
}

func findTerminal() *terminal {
	t := &terminal{fd: int(os.Stdin.Fd()), group: unix.Getpgrp()}
	if t.owner() < 0 {
		return nil
	}
	return t
}

// owner is the process group that may read from the terminal.
func (t *terminal) owner() int {
	if t == nil {
		return -1
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// isOurs reports whether this program is the one that may read from the terminal.
func (t *terminal) isOurs() bool { return t != nil && t.owner() == t.group }

// giveTo gives the terminal to a process group. The kernel asks those in the background by a signal whether they
// mean it, and stops them unless they ignore it.
func (t *terminal) giveTo(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// takeBack makes the terminal ours again, so that the shell finds it where it left it.
func (t *terminal) takeBack() { t.giveTo(t.group) }

// takeBackFrom does so if the command has it.
func (t *terminal) takeBackFrom(p *process) {
	if t.owner() == p.cmd.Process.Pid {
		t.takeBack()
	}
}

// stops are requests to stop: those that this program gets, and those that the command has followed.
type stops struct {
	asked chan os.Signal      // SIGTSTP to this program alone; a terminal sends it to the command
	seen  chan syscall.Signal // the command has stopped
}

// newStops leaves SIGTSTP alone if the caller has switched it off.
func newStops() stops {
	s := stops{asked: make(chan os.Signal, 1), seen: make(chan syscall.Signal, 1)}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(s.asked, syscall.SIGTSTP)
	}
	return s
}

func (s stops) release() { signal.Stop(s.asked) }

// stopWith stops this program because the command has stopped, and returns when it is to go on. A command that
// somebody stops who is not a terminal, and did not ask this program, is theirs to continue.
func (p *process) stopWith(reason syscall.Signal, asked bool) (goOn bool) {
	background := reason == syscall.SIGTTIN || reason == syscall.SIGTTOU
	switch {
	case background && p.terminal.isOurs(): // it was brought to the front without a signal
		return true
	case !asked && !background && p.terminal.owner() != p.cmd.Process.Pid:
		return false
	}
	p.terminal.takeBackFrom(p)
	stopGroup()
	return true
}

// goOn continues the command, in front if this program is there.
func (p *process) goOn() {
	if p.terminal.isOurs() {
		p.terminal.giveTo(p.cmd.Process.Pid)
	}
	p.pass(syscall.SIGCONT)
}

// stopGroup stops this program and all that were started together with it, as Ctrl-Z does, and returns when it is
// continued. The signal is that of programs in the background: once SIGTSTP has been caught, Go cannot have it stop
// the program any more.
func stopGroup() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(0, syscall.SIGTTIN)
	select {
	case <-continued:
	case <-time.After(stopPatience):
	}
}

// onContinue calls f whenever this program goes on after it was stopped, until the function that it returns is called.
func onContinue(f func()) (release func()) {
	continued, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(continued, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-continued:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(continued); close(done) }
}
