package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const (
	tokenEnv     = "LATCHKEY_TOKEN"
	defaultGrace = 5 * time.Second
)

func runCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a command while holding a lock",
		UsageText: "latchkey run --lock NAME [--wait 10s] [--lease 30s] [--fenced] -- CMD [ARGS…]",
		Description: `Waits for the lock, runs the command, and releases the lock when the command
has ended, however it ended. The lease is renewed for as long as the command
runs; if this program is killed, the lock comes back when the lease is over.

Standard input, output and error are the command's. SIGINT, SIGTERM, SIGHUP and
SIGQUIT are passed on to the command and its children, SIGUSR1 and SIGUSR2 to
the command alone. A signal that arrives before the lock does ends the wait.

When the lock is lost (taken away by force, or the server was silent for a whole
lease) the command and its children get SIGTERM and, after --grace, SIGKILL.
Children that made themselves a process group of their own are not reached.

The command gets the terminal, if there is one. Ctrl-Z there stops the command
but not this program: the lock stays held, and no shell prompt comes back until
the command is continued with SIGCONT.

Exit code: the command's own, or 128+n when signal n ended it; 75 when the lock
was not acquired in time; 76 when it was lost before the command ended; 127 and
126 when the command was not found or cannot be executed; 69 when the server
cannot be reached; 64 for a mistake on the command line.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "lock", Usage: "`NAME` of the lock"},
			&cli.DurationFlag{Name: "wait", Usage: "give up after `TIME` with exit code 75; 0s tries once", DefaultText: "wait for ever"},
			&cli.DurationFlag{Name: "lease", Usage: "`TIME` for which the lock outlives this program if it is killed", Value: latchkey.DefaultLease},
			&cli.BoolFlag{Name: "fenced", Usage: "take a fencing token and put it into " + tokenEnv},
			&cli.DurationFlag{Name: "grace", Usage: "`TIME` between SIGTERM and SIGKILL when the lock is lost", Value: defaultGrace},
		},
		HideHelpCommand: true,
		OnUsageError:    onUsageError,
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return runAction(ctx, cmd, args)
		},
	}
}

func runAction(ctx context.Context, cmd *cli.Command, args []string) error {
	j, err := jobFrom(cmd, args)
	if err != nil {
		return err
	}
	signals := catchSignals()
	defer signals.release()

	client, hold, err := j.enter(ctx, cmd, signals)
	if err != nil {
		return err
	}
	defer closeClient(client)
	return j.perform(cmd, hold, signals)
}

// job is what the command line asks for.
type job struct {
	lock   string
	wait   time.Duration
	waits  bool // wait is a limit; otherwise there is none
	lease  time.Duration
	grace  time.Duration
	fenced bool
	argv   []string
}

func jobFrom(cmd *cli.Command, args []string) (job, error) {
	j := job{
		lock:   cmd.String("lock"),
		wait:   cmd.Duration("wait"),
		waits:  cmd.IsSet("wait"),
		lease:  cmd.Duration("lease"),
		grace:  cmd.Duration("grace"),
		fenced: cmd.Bool("fenced"),
		argv:   cmd.Args().Slice(),
	}
	return j, j.check(args)
}

func (j job) check(args []string) error {
	switch {
	case j.lock == "":
		return usageError("run needs --lock NAME; see latchkey run --help")
	case len(j.argv) == 0:
		return usageError("run needs a command: latchkey run --lock %s -- CMD [ARGS…]", j.lock)
	case !afterDashes(j.argv, args):
		return usageError("put -- in front of the command: latchkey run --lock %s -- %s …", j.lock, j.argv[0])
	case j.wait < 0 || j.grace < 0 || j.lease <= 0:
		return usageError("--wait and --grace must not be negative, and --lease must be positive")
	}
	return executable(j.argv[0])
}

// afterDashes reports whether argv is what follows the first "--". Without the
// dashes, flags of the command would have been taken for ours.
func afterDashes(argv, args []string) bool {
	dashes := slices.Index(args, "--")
	return dashes >= 0 && len(args)-dashes-1 == len(argv)
}

// executable finds a mistyped command before anybody waits for a lock.
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

// enter connects and acquires, until a signal says otherwise.
func (j job) enter(ctx context.Context, cmd *cli.Command, signals *signals) (*latchkey.Client, *latchkey.Hold, error) {
	ctx, arrived := signals.interrupting(ctx)
	client, err := connect(ctx, cmd, latchkey.Options{Lease: j.lease})
	var hold *latchkey.Hold
	if err == nil {
		hold, err = j.acquire(ctx, client)
	}
	if sig := arrived(); sig != nil {
		err = silently(exitSignalled + signalNumber(sig))
	}
	if err != nil && client != nil {
		closeClient(client) // releases a hold that came together with the signal
	}
	return client, hold, err
}

func (j job) acquire(ctx context.Context, client *latchkey.Client) (*latchkey.Hold, error) {
	hold, err := j.ask(ctx, j.locker(client))
	if isBusy(err) {
		return nil, exitWith(exitNotAcquired, "%q is held by somebody else, waited %v", j.lock, j.wait)
	}
	return hold, libraryError(err)
}

func (j job) ask(ctx context.Context, lock latchkey.Locker) (*latchkey.Hold, error) {
	switch {
	case !j.waits:
		return lock.Lock(ctx)
	case j.wait == 0:
		return lock.TryLock(ctx)
	default:
		return lock.TryLock(ctx, latchkey.Wait(j.wait))
	}
}

func (j job) locker(client *latchkey.Client) latchkey.Locker {
	if j.fenced {
		return client.NewFencedLock(j.lock)
	}
	return client.NewLock(j.lock)
}

// isBusy tells a lock that somebody else held to the end from a server that
// could not be asked.
func isBusy(err error) bool {
	var network *net.OpError
	var server *rueidis.RedisError
	return errors.Is(err, latchkey.ErrNotAcquired) && !errors.As(err, &network) && !errors.As(err, &server)
}

// perform runs the command under the hold and releases it.
func (j job) perform(cmd *cli.Command, hold *latchkey.Hold, signals *signals) error {
	p, err := startProcess(j.argv, j.environment(hold))
	if err != nil {
		_ = j.release(hold)
		return startError(err)
	}
	lost := j.supervise(cmd, p, hold, signals.inbox)
	if lost {
		p.endGroup(j.grace)
	}
	return j.verdict(cmd, p.code(), lost, j.release(hold))
}

func (j job) environment(hold *latchkey.Hold) []string {
	if !j.fenced {
		return os.Environ()
	}
	return append(os.Environ(), tokenEnv+"="+strconv.FormatInt(hold.Token(), 10))
}

// supervise waits for the end of the command and reports whether the lock was
// lost before.
func (j job) supervise(cmd *cli.Command, p *process, hold *latchkey.Hold, inbox <-chan os.Signal) (lost bool) {
	var graceOver <-chan time.Time
	loss := hold.Lost()
	for {
		select {
		case <-p.ended:
			return lost
		case sig := <-inbox:
			p.pass(sig)
		case <-loss:
			loss, lost = nil, true
			say(cmd.Root().ErrWriter, "the lock %q is lost, ending the command", j.lock)
			p.pass(syscall.SIGTERM)
			graceOver = time.After(j.grace)
		case <-graceOver:
			graceOver = nil
			p.kill()
		}
	}
}

// release has its own context, because signals must not keep the lock from
// coming back.
func (j job) release(hold *latchkey.Hold) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return hold.Unlock(ctx)
}

// verdict turns the end of command and lock into one exit code. A command that
// ended by itself after its lock was gone did part of its work unprotected, and
// its own code would hide that.
func (j job) verdict(cmd *cli.Command, code int, lost bool, released error) error {
	switch {
	case lost:
		return silently(exitLost)
	case errors.Is(released, latchkey.ErrNotHeld):
		return exitWith(exitLost, "the lock %q was lost before the command ended, with code %d", j.lock, code)
	case released != nil:
		say(cmd.Root().ErrWriter, "the lock stays until its lease of %v is over: %v", j.lease, released)
	}
	return silently(code)
}
