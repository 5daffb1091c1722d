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

// job is a command that is to run behind a door, and what the command line says
// of how.
type job struct {
	cmd   *cli.Command
	wait  time.Duration
	waits bool // wait is a limit; otherwise there is none
	once  bool // one attempt, and no wait
	lease time.Duration
	grace time.Duration
	argv  []string

	again       bool   // after a loss it is to run again, under a guard of its own
	thing       string // what it runs under, for messages
	busy        string // why it was not let in, and a name follows
	occupants   func(context.Context, *latchkey.Client) (occupants, error)
	refused     func(string) error // what becomes of that, or nil: exitNotAcquired
	open        func(context.Context, *latchkey.Client) (door, error)
	environment func(guard) []string
}

// jobFlags are those of commands that wait, and run a command.
func jobFlags(thing string) []cli.Flag { return append(acquisitionFlags(thing), graceFlag()) }

// guardFlags are those of commands that run a command and do not wait.
func guardFlags(thing string) []cli.Flag {
	return append(nameFlags(thing), holdingFlag(thing), graceFlag())
}

// acquisitionFlags are those of commands that wait.
func acquisitionFlags(thing string) []cli.Flag {
	return append([]cli.Flag{
		waitFlag("give up after `TIME`, exit code 75", 0),
		&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "try once: the same as --wait 0s"},
		holdingFlag(thing),
	}, nameFlags(thing)...)
}

func holdingFlag(thing string) cli.Flag {
	return leaseFlag("`TIME` until the "+thing+" ends if this is killed", latchkey.DefaultLease)
}

// nameFlags are those that tell people who holds it, and for what.
func nameFlags(thing string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "label", Usage: "`NAME` that others see, - for none", DefaultText: "host:pid"},
		&cli.StringFlag{Name: "note", Usage: "`TEXT` that others see beside the " + thing},
	}
}

func graceFlag() cli.Flag {
	return &cli.DurationFlag{Name: "grace", Usage: "`TIME` from SIGTERM to SIGKILL after a loss", Value: defaultGrace,
		Validator: atLeast(time.Duration(0))}
}

// notes are what --note asks for.
func notes(cmd *cli.Command) []latchkey.NoteOption {
	if note := cmd.String("note"); note != "" {
		return []latchkey.NoteOption{latchkey.Note(note)}
	}
	return nil
}

// jobHelp is what is to be said of all of them. refused is the exit code without the thing, in words, and
// onlyIf, which may be "", when a loss is the end.
func jobHelp(thing, refused, onlyIf string) string {
	return fmt.Sprintf(`Standard input, output and error are the command's. SIGINT, SIGTERM, SIGHUP and
SIGQUIT are passed on to the command and its children, SIGUSR1 and SIGUSR2 to
the command alone. A signal that arrives before the %[1]s does ends the wait.

When the %[1]s is lost (taken away, or the server was silent for a whole lease)
the command and its children get SIGTERM and, after --grace, SIGKILL. Children
that made themselves a process group of their own are not reached.

The command gets the terminal, if there is one. Ctrl-Z there (SIGTSTP) stops the
command and this program, fg and bg continue both. Nothing renews the %[1]s
meanwhile: if they are stopped for longer than --lease, it is lost, and the command
is ended when it is continued.

Exit code: the command's own, or 128+n when signal n ended it; %[2]s;
76 when the %[1]s was lost before the command ended%[3]s; 127 and 126 when the command
was not found or cannot be executed; 69 when the server cannot be reached or does
not answer; 64 for a mistake on the command line.`, thing, refused, onlyIf)
}

// nameAndCommand reads NAME -- CMD, in front of which flags may stand. args is the whole command line.
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
		return "", nil, usageError("%s takes one NAME, and %q is one more", cmd.Name, before[1])
	case len(argv) == 0:
		return "", nil, usageError("%s needs a command: %s %s -- CMD [ARGS…]", cmd.Name, synopsis, before[0])
	}
	return before[0], argv, nil
}

// jobFrom reads what jobFlags offers. argv is the command, args the whole command line, and the synopsis how
// the user began.
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

// newJob reads what acquisitionFlags offers.
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
		return j, usageError("--no-wait and --wait %v exclude each other", j.wait)
	}
	return j, nil
}

// afterDashes reports whether argv is what follows the first "--". Without the
// dashes, flags of the command would have been taken for ours.
func afterDashes(argv, args []string) bool {
	dashes := slices.Index(args, "--")
	return dashes >= 0 && len(args)-dashes-1 == len(argv)
}

// executable finds a mistyped command before anybody waits for it.
func executable(name string) error {
	_, err := exec.LookPath(name)
	return startError(err)
}

// startError gives the reason why a command does not start the code that shells
// give it.
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

// run does the job from the connection to the exit code. One that is to run again after a loss does so
// unless a signal came that was to end it.
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

// enter connects, unless there is a client, and acquires, until a signal says otherwise. After an error the
// client is closed.
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
		closeClient(client) // releases what came together with the signal
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

// ending is what has happened to a command before it ended.
type ending struct {
	lost bool // the guard was lost
	told bool // a signal was passed on that ends commands
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

// supervise waits for the end of the command and reports whether the guard was
// lost before.
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
				if !end.lost && g.Err() != nil { // while nobody could look
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

// release has its own context, because signals must not keep from others what we
// no longer need.
func release(g guard) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return g.Release(ctx)
}

// verdict turns the end of command and guard into one exit code. A command that
// ended by itself after its guard was gone did part of its work unprotected, and
// its own code would hide that.
func (j job) verdict(code int, lost bool, released error) error {
	switch {
	case lost:
		return silently(exitLost)
	case errors.Is(released, latchkey.ErrNotHeld):
		return exitWith(exitLost, "%s was lost before the command ended, with code %d", j.thing, code)
	}
	return j.ended(code, released)
}

// ended is the end with a code after a release.
func (j job) ended(code int, released error) error {
	switch {
	case errors.Is(released, latchkey.ErrNotHeld):
		return exitWith(exitLost, "%s is lost", j.thing)
	case released != nil:
		j.say("%s stays until its lease is over: %v", j.thing, plainError{released})
	}
	return silently(code)
}
