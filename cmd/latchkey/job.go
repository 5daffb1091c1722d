package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// job is a command that runs behind a door, with the settings of the command
// line.
type job struct {
	cmd   *cli.Command
	wait  time.Duration
	waits bool // wait is a limit; otherwise the wait has no limit
	once  bool // make one attempt and do not wait
	lease time.Duration
	grace time.Duration
	argv  []string

	again       bool   // run again after a loss, under a new guard
	thing       string // the lock, permit or leadership, for messages
	waitsFor    string // the name of the lock or election, or the permit, for the message of a wait
	busy        string // begins the message after a failed acquisition; the holder follows
	occupants   func(context.Context, *latchkey.Client) (occupants, error)
	refused     func(string) error // handles that message; nil: exitNotAcquired
	open        func(context.Context, *latchkey.Client) (door, error)
	environment func(guard) []string
	observer    func(latchkey.Event) // of the client, or nil
	stdout      *os.File             // of the command; nil: ours
	done        func(guard, int)     // handles the exit code before the release, or nil
}

// startError gives an error of starting a command the exit code that shells use.
func startError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return exitWith(exitNotFound, "%w", err)
	default:
		return exitWith(exitNotExecutable, "%w", err)
	}
}

// run does the job from the connection to the exit code. After a loss, a job with again set runs
// again, unless a signal ended it.
func (j job) run(ctx context.Context) error {
	signals := catchSignals()
	defer signals.release()

	var client *latchkey.Client
	for {
		var g guard
		var err error
		if client, g, err = j.enter(ctx, signals, client); err != nil {
			return err
		}
		end, err := j.perform(g, signals)
		if !j.again || !end.lost || end.told {
			closeClient(client)
			return err
		}
	}
}

// enter connects, unless there is a client, and acquires the guard. A signal interrupts it. After
// an error the client is closed.
func (j job) enter(ctx context.Context, signals *signals, client *latchkey.Client) (*latchkey.Client, guard, error) {
	ctx, arrived := signals.interrupting(ctx)
	var err error
	if client == nil {
		client, err = connect(ctx, j.cmd, latchkey.Options{Lease: j.lease, Label: j.cmd.String("label"), Observer: j.observer})
	}
	var g guard
	if err == nil {
		g, err = j.acquire(ctx, client)
	}
	if sig := arrived(); sig != nil {
		err = silently(exitSignalled + signalNumber(sig))
	}
	if err != nil && client != nil {
		closeClient(client) // releases a guard that was granted together with the signal
	}
	return client, g, err
}

func (j job) acquire(ctx context.Context, client *latchkey.Client) (guard, error) {
	d, err := j.open(ctx, client)
	if err != nil {
		return nil, libraryError(err)
	}
	g, err := j.ask(ctx, client, d)
	switch {
	case errors.Is(err, latchkey.ErrNotAcquired) && j.refused != nil:
		return nil, j.refused(j.busyText(ctx, client))
	case errors.Is(err, latchkey.ErrNotAcquired):
		return nil, exitWith(exitNotAcquired, "%s", j.busyText(ctx, client))
	}
	return g, libraryError(err)
}

func (j job) ask(ctx context.Context, client *latchkey.Client, d door) (g guard, err error) {
	if j.once || j.waits && j.wait == 0 {
		return d.tryEnter(ctx)
	}
	var options []latchkey.WaitOption
	if j.waits {
		options = append(options, latchkey.Wait(j.wait))
	}
	sayWhile(ctx, j.cmd.Root().ErrWriter, j.waitingText(client), func() { g, err = d.enter(ctx, options...) })
	return g, err
}

// ending is what happened to a command before it ended.
type ending struct {
	lost bool // the guard was lost
	told bool // a signal that ends commands was passed on
}

// perform runs the command under the guard and releases it.
func (j job) perform(g guard, signals *signals) (ending, error) {
	p, err := startProcess(j.argv, j.environment(g), cmp.Or(j.stdout, os.Stdout))
	if err != nil {
		_ = release(g)
		return ending{}, startError(err)
	}
	end := j.supervise(p, g, signals.inbox)
	if end.lost {
		p.endGroup(j.grace)
	}
	if j.done != nil {
		j.done(g, p.code)
	}
	released := release(g)
	err = j.verdict(p.code, end.lost, released)
	end.lost = end.lost || errors.Is(released, latchkey.ErrNotHeld)
	return end, err
}

// supervise waits for the end of the command, and reports whether the guard was
// lost first.
func (j job) supervise(p *process, g guard, inbox <-chan os.Signal) (end ending) {
	var graceOver <-chan time.Time
	loss, askedToStop := g.Lost(), false
	lose := func() {
		loss, end.lost = nil, true
		j.say("%s is lost, ending the command", j.thing)
		p.pass(syscall.SIGTERM)
		graceOver = time.After(j.grace)
	}
	for {
		select {
		case <-p.ended:
			return end
		case sig := <-inbox:
			end.told = end.told || ends(sig)
			p.pass(sig)
		case sig := <-p.stops.asked:
			askedToStop = true
			p.pass(sig)
		case reason := <-p.stops.seen:
			if p.stopWith(reason, askedToStop) {
				if !end.lost && g.Err() != nil { // lost while this program was stopped
					lose()
				}
				p.goOn()
			}
			askedToStop = false
		case <-loss:
			lose()
		case <-graceOver:
			graceOver = nil
			p.kill()
		}
	}
}

func (j job) say(format string, args ...any) { say(j.cmd.Root().ErrWriter, format, args...) }

// release uses a context of its own, because a signal must not prevent the release.
func release(g guard) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return g.Release(ctx)
}

// verdict turns the ends of command and guard into one exit code. A command that
// ended by itself after the loss of its guard did part of its work unprotected.
// The exit code of the command would hide that.
func (j job) verdict(code int, lost bool, released error) error {
	switch {
	case lost:
		return silently(exitLost)
	case errors.Is(released, latchkey.ErrNotHeld):
		return exitWith(exitLost, "%s was lost before the command ended (exit code of the command: %d)", j.thing, code)
	}
	return j.ended(code, released)
}

// ended returns the result for a code of the command and the error of the release.
func (j job) ended(code int, released error) error {
	switch {
	case errors.Is(released, latchkey.ErrNotHeld):
		return exitWith(exitLost, "%s is lost", j.thing)
	case released != nil:
		j.say("%s was not released and lasts until its lease expires: %v", j.thing, plainError{released})
	}
	return silently(code)
}
