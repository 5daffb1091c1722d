package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The environment variables that make a test binary run as a child.
const (
	envChild     = "LATCHKEY_RIG_CHILD"
	envChildArgs = "LATCHKEY_RIG_CHILD_ARGS"
)

// ChildMain is the main function of a child process.
type ChildMain func(ctx context.Context, args []string) error

// longestLine is more than any line that a child prints.
const longestLine = 64 << 20

var childMains = map[string]ChildMain{}

// ChildProgram is a program that runs in a process of its own, so that tests can kill or stop it.
type ChildProgram struct{ name string }

// Child registers a program under a name. Call it in a package-level variable: the child process is
// the test binary again, and must find the program before [Main] runs.
func Child(name string, main ChildMain) ChildProgram {
	childMains[name] = main
	return ChildProgram{name}
}

// childToRun returns the program that this process runs instead of tests, if it is a child.
func childToRun() (run func() int, ok bool) {
	name := os.Getenv(envChild)
	if name == "" {
		return nil, false
	}
	return func() int { return runChild(name) }, true
}

func runChild(name string) int {
	var args []string
	err := json.Unmarshal([]byte(os.Getenv(envChildArgs)), &args)
	if err == nil {
		err = childMains[name](context.Background(), args)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "child %s: %v\n", name, err)
		return 1
	}
	return 0
}

// ChildProcess is a running child. It is killed at the end of the test, if it has not ended before.
type ChildProcess struct {
	cmd    *exec.Cmd
	lines  chan string
	exited chan struct{}
	result error // of the process; read after exited is closed
}

// Start runs the program in a new process. Its output is its events, line by line; its standard
// error is passed on.
func (p ChildProgram) Start(tb testing.TB, args ...string) *ChildProcess {
	tb.Helper()
	c := &ChildProcess{cmd: p.command(tb, args), lines: make(chan string, 1024), exited: make(chan struct{})}
	stdout, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		tb.Fatalf("rig: child %s: %v", p.name, err)
	}
	output := bufio.NewScanner(stdout)
	output.Buffer(nil, longestLine)
	go c.watch(output)
	tb.Cleanup(c.Kill)
	return c
}

func (p ChildProgram) command(tb testing.TB, args []string) *exec.Cmd {
	tb.Helper()
	encoded, err := json.Marshal(args)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+p.name, envChildArgs+"="+string(encoded))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = dieWithParent()
	return cmd
}

// watch collects the output, then reaps the process.
func (c *ChildProcess) watch(output *bufio.Scanner) {
	for output.Scan() {
		c.lines <- output.Text()
	}
	close(c.lines)
	c.result = c.cmd.Wait()
	close(c.exited)
}

// Line returns the rest of the next line that starts with prefix; lines before it
// are skipped.
func (c *ChildProcess) Line(tb testing.TB, within time.Duration, prefix string) string {
	tb.Helper()
	timeout := time.After(within)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				tb.Fatalf("the child ended without printing %q", prefix)
			}
			if rest, found := strings.CutPrefix(line, prefix); found {
				return strings.TrimSpace(rest)
			}
		case <-timeout:
			_ = c.cmd.Process.Signal(syscall.SIGQUIT) // it prints what its goroutines do
			select {
			case <-c.exited:
			case <-time.After(time.Second): // it is stopped
			}
			tb.Fatalf("the child did not print %q within %v", prefix, within)
		}
	}
}

// Kill ends the child with SIGKILL and reaps it.
func (c *ChildProcess) Kill() {
	_ = c.cmd.Process.Kill() // fails only if it has already ended
	for range c.lines {
	}
	<-c.exited
}

// Stop suspends the child (SIGSTOP). When it returns, the child does nothing any more, but commands
// that it has already sent may still be in flight.
func (c *ChildProcess) Stop(tb testing.TB) { tb.Helper(); freeze(tb, c.cmd.Process) }

// Continue resumes the child (SIGCONT).
func (c *ChildProcess) Continue(tb testing.TB) { tb.Helper(); thaw(tb, c.cmd.Process) }

// Wait waits for the child to end by itself, and fails the test if it ends with an error or too
// late.
func (c *ChildProcess) Wait(tb testing.TB, within time.Duration) {
	tb.Helper()
	Await(tb, within, "the child ends", c.exited)
	if c.result != nil {
		tb.Fatalf("the child failed: %v", c.result)
	}
}
