package main

import (
	"os"
	"os/exec"
	"syscall"
)

// passedOn has the signal that Windows can deliver. The console itself sends an
// interrupt to the command; catching it here keeps this program from ending first.
var passedOn = []os.Signal{os.Interrupt}

// ends reports whether the purpose of a signal is to end a command.
func ends(os.Signal) bool { return true }

// lead does nothing: Windows has no process groups that a signal can reach.
func lead(*exec.Cmd, *terminal, bool) {}

// pass kills the command on any signal but an interrupt: a process cannot send
// another process anything else.
func (p *process) pass(sig os.Signal) {
	if sig != os.Interrupt {
		p.kill()
	}
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

func (p *process) groupLives() bool { return false }

func (p *process) await() int {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	return p.cmd.ProcessState.ExitCode()
}

// There is no job control.

type terminal struct{}

func findTerminal() *terminal { return nil }

func (t *terminal) isOurs() bool { return false }

func (t *terminal) takeBack() {}

func (t *terminal) takeBackFrom(*process) {}

type stops struct {
	asked chan os.Signal
	seen  chan syscall.Signal
}

func newStops() stops { return stops{} }

func (s stops) release() {}

func (p *process) stopWith(syscall.Signal, bool) bool { return false }

func (p *process) goOn() {}

func stopGroup() {}

func onContinue(func()) func() { return func() {} }
