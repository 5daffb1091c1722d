package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const defaultGrace = 5 * time.Second

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
	busy        string // begins the message after a failed acquisition; the holder follows
	occupants   func(context.Context, *latchkey.Client) (occupants, error)
	refused     func(string) error // handles that message; nil: exitNotAcquired
	open        func(context.Context, *latchkey.Client) (door, error)
	environment func(guard) []string
}

// jobFlags returns the flags of commands that wait and then run a command.
func jobFlags(thing string) []cli.Flag { return append(acquisitionFlags(thing), graceFlag()) }

// guardFlags returns the flags of commands that run a command without waiting.
func guardFlags(thing string) []cli.Flag {
	return append(nameFlags(thing), holdingFlag(thing), graceFlag())
}

// acquisitionFlags returns the flags of commands that wait.
func acquisitionFlags(thing string) []cli.Flag {
	return append([]cli.Flag{
		waitFlag("give up after `TIME` with exit code 75", 0),
		&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "try once, like --wait 0s"},
		holdingFlag(thing),
	}, nameFlags(thing)...)
}

func holdingFlag(thing string) cli.Flag {
	return leaseFlag("`TIME` after which the "+thing+" is free if this program is killed", latchkey.DefaultLease)
}

// nameFlags returns the flags that show people who holds the thing, and what for.
func nameFlags(thing string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "label", Usage: "`NAME` shown to others, - for none", DefaultText: "host:pid"},
		&cli.StringFlag{Name: "note", Usage: "`TEXT` shown to others with the " + thing},
	}
}

func graceFlag() cli.Flag {
	return &cli.DurationFlag{Name: "grace", Usage: "`TIME` between SIGTERM and SIGKILL after a loss", Value: defaultGrace,
		Validator: atLeast(time.Duration(0))}
}

// notes returns the options for --note.
func notes(cmd *cli.Command) []latchkey.NoteOption {
	if note := cmd.String("note"); note != "" {
		return []latchkey.NoteOption{latchkey.Note(note)}
	}
	return nil
}

// jobHelp returns the part of the help text that all jobs share. refused describes the exit code after a failed
// acquisition. onlyIf, which may be "", says when a loss ends the program.
func jobHelp(thing, refused, onlyIf string) string {
	return fmt.Sprintf(`The command inherits standard input, output and error. SIGINT, SIGTERM, SIGHUP and
SIGQUIT are passed to the command and its children, SIGUSR1 and SIGUSR2 only to the
command. A signal that arrives before the %[1]s is acquired ends the wait.

When the %[1]s is lost (taken away, or the server did not answer for a whole lease),
the command and its children get SIGTERM and, after --grace, SIGKILL. Children that
created their own process group do not get these signals.

If there is a terminal, the command gets it. Ctrl-Z (SIGTSTP) then stops the command
and this program; fg and bg continue both. While both are stopped, nothing renews
the %[1]s: after --lease it is lost, and the command is ended as soon as it
continues.

Exit code: the command's own, or 128+n when signal n ended it; %[2]s;
76 when the %[1]s was lost before the command ended%[3]s; 127 when the command was
not found, 126 when it cannot be executed; 69 when the server cannot be reached or does
not answer; 64 for a mistake on the command line.`, thing, refused, onlyIf)
}

// nameAndCommand reads NAME -- CMD, which flags may precede. args is the whole command line.
func nameAndCommand(cmd *cli.Command, args []string) (name string, argv []string, err error) {
	all, dashes := cmd.Args().Slice(), slices.Index(args, "--")
	if dashes >= 0 {
		argv = args[dashes+1:]
	}
	before := slices.DeleteFunc(all[:max(len(all)-len(argv), 0)], func(word string) bool { return word == "--" })
	synopsis := cmd.FullName()
	switch {
	case len(before) == 0:
		return "", nil, usageError("%s needs a NAME; see %s --help", cmd.Name, synopsis)
	case dashes < 0 && len(before) > 1:
		return "", nil, usageError("put -- in front of the command: %s %s -- %s …", synopsis, before[0], before[1])
	case len(before) > 1:
		return "", nil, usageError("%s takes only one NAME; %q is extra", cmd.Name, before[1])
	case len(argv) == 0:
		return "", nil, usageError("%s needs a command: %s %s -- CMD [ARGS…]", cmd.Name, synopsis, before[0])
	}
	return before[0], argv, nil
}

// jobFrom reads the flags of jobFlags. argv is the command, args the whole command line, and synopsis the part before
// the command, for messages.
func jobFrom(cmd *cli.Command, argv, args []string, synopsis string) (job, error) {
	j, err := newJob(cmd)
	j.argv = argv
	switch {
	case err != nil:
		return j, err
	case len(j.argv) == 0:
		return j, usageError("a command is missing: latchkey %s -- CMD [ARGS…]", synopsis)
	case !afterDashes(j.argv, args):
		return j, usageError("put -- in front of the command: latchkey %s -- %s …", synopsis, j.argv[0])
	}
	return j, executable(j.argv[0])
}

// newJob reads the flags of acquisitionFlags.
func newJob(cmd *cli.Command) (job, error) {
	j := job{
		cmd:   cmd,
		wait:  cmd.Duration("wait"),
		waits: cmd.IsSet("wait"),
		once:  cmd.Bool("no-wait"),
		lease: cmd.Duration("lease"),
		grace: cmd.Duration("grace"),
	}
	if j.once && j.wait > 0 {
		return j, usageError("--no-wait and --wait %s cannot be used together", timeText(j.wait))
	}
	return j, nil
}

// afterDashes reports whether argv is all that follows the first "--". Without the
// dashes, this program would have parsed the flags of the command.
func afterDashes(argv, args []string) bool {
	dashes := slices.Index(args, "--")
	return dashes >= 0 && len(args)-dashes-1 == len(argv)
}

// executable finds a mistyped command before the wait begins.
func executable(name string) error {
	_, err := exec.LookPath(name)
	return startError(err)
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

// run does the job from the connection to the exit code. After a loss, a job with again set runs again, unless a signal
// ended it.
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

// enter connects, unless there is a client, and acquires the guard. A signal interrupts it. After an error the client
// is closed.
func (j job) enter(ctx context.Context, signals *signals, client *latchkey.Client) (*latchkey.Client, guard, error) {
	ctx, arrived := signals.interrupting(ctx)
	var err error
	if client == nil {
		client, err = connect(ctx, j.cmd, latchkey.Options{Lease: j.lease, Label: j.cmd.String("label")})
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
	g, err := j.ask(ctx, d)
	switch {
	case errors.Is(err, latchkey.ErrNotAcquired) && j.refused != nil:
		return nil, j.refused(j.busyText(ctx, client))
	case errors.Is(err, latchkey.ErrNotAcquired):
		return nil, exitWith(exitNotAcquired, "%s", j.busyText(ctx, client))
	}
	return g, libraryError(err)
}

func (j job) ask(ctx context.Context, d door) (guard, error) {
	switch {
	case j.once, j.waits && j.wait == 0:
		return d.tryEnter(ctx)
	case !j.waits:
		return d.enter(ctx)
	default:
		return d.enter(ctx, latchkey.Wait(j.wait))
	}
}

// ending is what happened to a command before it ended.
type ending struct {
	lost bool // the guard was lost
	told bool // a signal that ends commands was passed on
}

// perform runs the command under the guard and releases it.
func (j job) perform(g guard, signals *signals) (ending, error) {
	p, err := startProcess(j.argv, j.environment(g))
	if err != nil {
		_ = release(g)
		return ending{}, startError(err)
	}
	end := j.supervise(p, g, signals.inbox)
	if end.lost {
		p.endGroup(j.grace)
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
