//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// passedOn are the signals that people and supervisors send to a command.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// ends reports whether the purpose of a signal is to end a command.
func ends(sig os.Signal) bool { return sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 }

// lead makes the command the leader of a process group, so that a signal can reach
// the whole group. With front, it also gives the terminal to that group.
func lead(cmd *exec.Cmd, t *terminal, front bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if front {
		cmd.SysProcAttr.Foreground = true
		cmd.SysProcAttr.Ctty = t.fd
	}
	followIntoDeath(cmd.SysProcAttr)
}

// pass sends sig to the whole group, as a terminal does. SIGUSR1 and SIGUSR2 go to
// the command only: only the command knows their meaning, and they would end its
// children.
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

// await returns the code with which a shell would report the end of the command. Until then it
// reports each stop of the command, which os/exec does not see.
func (p *process) await() int {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // something else has waited for all children
			return exitSoftware
		case status.Stopped():
			p.stops.seen <- status.StopSignal()
		case status.Signaled():
			return exitSignalled + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}
