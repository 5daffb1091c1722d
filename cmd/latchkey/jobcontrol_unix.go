//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopPatience limits how long stopGroup waits to be stopped. The kernel does not stop a program
// that no shell could continue.
const stopPatience = time.Second

// terminal is the terminal on standard input, or nil if there is none.
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

// owner returns the process group that may read from the terminal, or -1.
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

// isOurs reports whether this program may read from the terminal.
func (t *terminal) isOurs() bool { return t != nil && t.owner() == t.group }

// giveTo gives the terminal to a process group. It ignores SIGTTOU: otherwise the kernel would stop
// this program with that signal if it is in the background.
func (t *terminal) giveTo(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
}

// takeBack makes the terminal ours again, because the shell expects that.
func (t *terminal) takeBack() { t.giveTo(t.group) }

// takeBackFrom makes the terminal ours again if the command has it.
func (t *terminal) takeBackFrom(p *process) {
	if t.owner() == p.cmd.Process.Pid {
		t.takeBack()
	}
}

// stops has the requests that this program should stop, and the stops of the command.
type stops struct {
	asked chan os.Signal      // SIGTSTP sent to this program only; a terminal sends it to the command
	seen  chan syscall.Signal // the command has stopped
}

// newStops does not catch SIGTSTP if the caller of this program made it ignored.
func newStops() stops {
	s := stops{asked: make(chan os.Signal, 1), seen: make(chan syscall.Signal, 1)}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(s.asked, syscall.SIGTSTP)
	}
	return s
}

func (s stops) release() { signal.Stop(s.asked) }

// stopWith stops this program because the command has stopped, and returns when this program
// continues. It reports whether to continue the command too. If neither the terminal nor a signal
// to this program stopped the command, it returns false: the process that stopped the command has
// to continue it.
func (p *process) stopWith(reason syscall.Signal, asked bool) (goOn bool) {
	background := reason == syscall.SIGTTIN || reason == syscall.SIGTTOU
	switch {
	case background && p.terminal.isOurs(): // this program came to the foreground without a signal
		return true
	case !asked && !background && p.terminal.owner() != p.cmd.Process.Pid:
		return false
	}
	p.terminal.takeBackFrom(p)
	stopGroup()
	return true
}

// goOn continues the command, in the foreground if this program is there.
func (p *process) goOn() {
	if p.terminal.isOurs() {
		p.terminal.giveTo(p.cmd.Process.Pid)
	}
	p.pass(syscall.SIGCONT)
}

// stopGroup stops this program and its process group, as Ctrl-Z does, and returns when the program
// continues. It sends SIGTTIN, the signal that stops readers in the background: once a Go program
// has caught SIGTSTP, that signal can no longer stop it.
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

// onContinue calls f whenever this program continues after a stop, until the returned function is
// called.
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
