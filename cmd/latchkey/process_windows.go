package main

import (
	"os"
	"os/exec"
)

// passedOn is what Windows can deliver. The console itself passes an interrupt
// to the command, so here it only must not end this program first.
var passedOn = []os.Signal{os.Interrupt}

// ends reports whether a signal is sent to end a command.
func ends(os.Signal) bool { return true }

// lead has nothing to do: there are no process groups to be signalled.
func lead(*exec.Cmd, *terminal) {}

// pass ends the command for any signal but the interrupt: it is the only thing
// that one process can tell another.
func (p *process) pass(sig os.Signal) {
	if sig != os.Interrupt {
		p.kill()
	}
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

func (p *process) groupLives() bool { return false }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }

type terminal struct{}

func ownTerminal() *terminal { return nil }

func (t *terminal) takeBack() {}
