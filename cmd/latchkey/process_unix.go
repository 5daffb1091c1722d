//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that people and supervisors send to a command.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// ends reports whether a signal is sent to end a command.
func ends(sig os.Signal) bool { return sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 }

// lead makes the command the leader of a process group, which is what a signal
// can reach as a whole; and the one the terminal belongs to, if it was ours.
func lead(cmd *exec.Cmd, t *terminal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if t != nil {
		cmd.SysProcAttr.Foreground = true
		cmd.SysProcAttr.Ctty = t.fd
	}
	followIntoDeath(cmd.SysProcAttr)
}

// pass sends sig to the whole group, as a terminal does; except the signals
// whose meaning only the command itself knows and which end everybody else.
func (p *process) pass(sig os.Signal) {
	number := sig.(syscall.Signal)
	if number == syscall.SIGUSR1 || number == syscall.SIGUSR2 {
		_ = p.cmd.Process.Signal(sig)
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, number)
}

func (p *process) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

func (p *process) groupLives() bool { return syscall.Kill(-p.cmd.Process.Pid, 0) == nil }

// exitCode is the one a shell would report.
func exitCode(state *os.ProcessState) int {
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return exitSignalled + int(status.Signal())
	}
	return status.ExitStatus()
}

// terminal is the one on standard input, while this program is the one that may
// read from it. A nil terminal is none.
type terminal struct {
	fd    int
	group int // ours
}

func ownTerminal() *terminal {
	fd, group := int(os.Stdin.Fd()), unix.Getpgrp()
	owner, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || owner != group {
		return nil
	}
	return &terminal{fd: fd, group: group}
}

// takeBack makes the terminal ours again, so that the shell finds it where it
// left it. The kernel asks those in the background by a signal whether they
// mean it, and stops them unless they ignore it.
func (t *terminal) takeBack() {
	if t == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.group)
}
