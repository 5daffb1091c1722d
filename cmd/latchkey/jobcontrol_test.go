//go:build unix

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/latchkeytest"
)

// inShell starts an interactive bash, which has job control, in a terminal.
func inShell(t *testing.T, width int, server *latchkeytest.Server) *pane {
	t.Helper()
	if !inPath("bash") {
		t.Skip("bash is not in PATH: its job control is what is tested")
	}
	url := ""
	if server != nil {
		url = server.URL()
	}
	p := onScreen(t, width, url, `exec env PS1='> ' bash --norc --noprofile -i`)
	p.await(">")
	return p
}

// enter types a line and waits for its effects on the screen.
func (p *pane) enter(line string, texts ...string) {
	p.t.Helper()
	p.typeIn(line)
	p.keys("Enter")
	p.await(texts...)
}

// feed types a line for a program that fg has brought to the foreground, and repeats it until the
// program answers. A line that is typed while the terminal is still in the mode of the shell does
// not reach the program.
func (p *pane) feed(line, answer string) {
	p.t.Helper()
	p.eventually(answer, func() bool {
		p.typeIn(line)
		p.keys("Enter")
		for range 50 {
			if strings.Contains(strings.Join(p.lines(), "\n"), answer) {
				return true
			}
			time.Sleep(20 * time.Millisecond) // a terminal reports no changes
		}
		return false
	})
}

// interrupt presses Ctrl-C and waits for the prompt.
func (p *pane) interrupt() {
	p.t.Helper()
	p.keys("C-c")
	prompt := regexp.MustCompile(`\^C\n*>`)
	p.eventually("the prompt", func() bool { return prompt.MatchString(strings.Join(p.lines(), "\n")) })
}

// awaitFree waits until the lock is released or its lease has ended. A query right at the end of
// the lease may fail.
func awaitFree(t *testing.T, server *latchkeytest.Server) {
	t.Helper()
	lock := server.Client().NewLock("orders")
	eventually(t, "the lock is free", func() bool {
		seen, err := lock.Inspect(t.Context())
		return err == nil && !seen.Locked()
	})
}

func TestRunStopsAndGoesOnWithItsCommand(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	p := inShell(t, 100, server)
	p.enter(`"$LATCHKEY" run --lock orders -- sh -c 'echo ready; while read x; do echo "got $x"; done'`, "\nready")
	for i, word := range []string{"one", "two"} {
		p.keys("C-z")
		p.await("Stopped")
		p.enter(fmt.Sprintf("echo shell $((%d+1))", i), fmt.Sprintf("\nshell %d", i+1))
		assert.True(t, isLocked(t, server, "orders"))
		p.keys("C-l")
		p.enter("fg", "run --lock")
		p.feed(word, "\ngot "+word)
	}
	p.interrupt()
	p.enter(`echo "code $?"`, "code 130")
	assert.False(t, isLocked(t, server, "orders"))
}

// A program that is stopped does not renew its lock, so the command must not go on.
func TestRunThatWasStoppedForTooLong(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	p := inShell(t, 100, server)
	p.enter(`"$LATCHKEY" run --lock orders --lease 2s -- sh -c 'trap "echo told; exit 3" TERM; echo ready; while :; do read x; echo "went on"; done'`, "\nready")
	p.keys("C-z")
	p.await("Stopped")
	awaitFree(t, server)
	p.enter("fg", `the lock "orders" is lost`, "\ntold")
	p.enter(`echo "code $?"`, "code 76")
	assert.NotContains(t, strings.Join(p.lines(), "\n"), "\nwent on")
}

// A command that was started in the background stops when it reads, and gets the terminal with fg.
func TestRunFromTheBackground(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	p := inShell(t, 100, server)
	p.enter(`"$LATCHKEY" run --lock orders -- cat &`, "[1]")
	eventually(t, "it has the lock", func() bool { return isLocked(t, server, "orders") })
	p.eventually("it is stopped", func() bool {
		p.keys("C-l")
		p.enter("jobs", "run --lock")
		return strings.Contains(strings.Join(p.lines(), "\n"), "Stopped")
	})
	p.keys("C-l")
	p.enter("fg", "-- cat")
	p.feed("some text", "\nsome text\nsome text")
	p.interrupt()
	p.enter(`echo "code $?"`, "code 130")
}

// SIGTSTP from another process has the same effect as Ctrl-Z.
func TestRunIsToldToStop(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	p := inShell(t, 100, server)
	p.enter(`"$LATCHKEY" run --lock orders -- sh -c 'echo re"ad"y; sleep 600' &`, "ready")
	p.enter(`kill -TSTP $! && echo se"n"t`, "sent")
	p.eventually("it is stopped", func() bool {
		p.enter("jobs", "run --lock")
		return strings.Contains(strings.Join(p.lines(), "\n"), "Stopped")
	})
	assert.True(t, isLocked(t, server, "orders"))
	p.enter("kill -CONT $!; kill $!")
	awaitFree(t, server)
}

// The shell has the terminal while top is stopped. Afterwards top has it again, at the current
// size.
func TestTopStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	server := latchkeytest.NewServer(t)
	hold(t, server.Client().NewLock("orders"))
	p := inShell(t, 80, server)
	p.enter(`"$LATCHKEY" top --every 200ms`, "1 objects, 1 locked", "q quit")
	p.keys("C-z")
	p.await("Stopped")
	p.enter("echo shell $((40+2)); stty -a | grep -ow -e '-icanon' -e 'icanon'", "\nshell 42", "\nicanon")
	p.tmux("resize-window", "-x", "120", "-y", "24")
	p.enter("fg", "HELD BY", "1 objects, 1 locked", "q quit")
	assert.NotContains(t, strings.Join(p.lines(), "\n"), "shell 42")
	p.keys("q")
	p.await("shell 42")
	p.enter(`echo "code $?"`, "code 0")
}

// The demo goes on. TestScreenForgetsRowsWhenItWasStopped shows, without a race, that it goes on
// below later output.
func TestDemoStopsAndGoesOn(t *testing.T) {
	long(t)
	t.Parallel()
	p := inShell(t, 80, nil)
	p.enter(`"$LATCHKEY" demo --for 4s --lease 400ms --workers 2`, "worker 1", "turns")
	p.keys("C-z")
	p.await("Stopped")
	p.enter("echo shell $((40+2))", "\nshell 42")
	p.keys("C-z")                      // has no effect
	time.Sleep(300 * time.Millisecond) // several frames, none of which may be drawn
	require.Contains(t, strings.Join(p.lines(), "\n"), "shell 42")
	p.enter("fg", "A POOL WITH A LIMIT")
}
