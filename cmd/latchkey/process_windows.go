package main

import (
	"os"
	"os/exec"
	"syscall"
)

// passedOn is what Windows can deliver. The console itself passes an interrupt
// to the command, so here it only must not end this program first.
var passedOn = []os.Signal{os.Interrupt}

// ends reports whether a signal is sent to end a command.
func ends(os.Signal) bool { return true }

// lead has nothing to do: there are no process groups to be signalled.
func lead(*exec.Cmd, *terminal, bool) {}

// pass ends the command for any signal but the interrupt: it is the only thing
// that one process can tell another.
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
