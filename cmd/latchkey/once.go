package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func onceCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "once",
		Usage:     "run a command that is to succeed once in a fleet",
		UsageText: "latchkey once NAME --ttl 24h [flags] -- CMD [ARGS…]\nlatchkey once NAME --forget",
		Description: `If the command has succeeded under this NAME on any machine, prints its output and
exits with 0. Otherwise runs the command, or waits for the machine that does. If the
command exits with 0, the server stores its standard output, or the first 65,536 bytes
of it, for --ttl. Any other exit code, or a crash, lets the next machine run it.
Nothing else is stored: standard error is not. The output goes through a pipe, so the
command does not see a terminal there.

  latchkey once migration:42 --ttl forever -- ./migrate
  latchkey once "invoice:$id" --ttl 24h -- ./send-invoice "$id"

--forget runs nothing: it forgets the success, so that the next command runs again. It
does not end a command that is running.

  latchkey once migration:42 --forget

` + tokenEnv + ` in the command's environment contains the fencing token.

` + jobHelp("run", "75 when\nanother machine ran it until the end of the wait", ""),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "ttl", Usage: "remember the success for `TIME`, or forever; required, except with --forget",
				Validator: func(text string) error {
					_, err := rememberedFor(text)
					return err
				}},
			&cli.BoolFlag{Name: "forget", Usage: "forget the success, and run nothing"},
			waitFlag("give up after `TIME` with exit code 75", time.Millisecond),
			holdingFlag("name"),
			graceFlag(),
		}, nameFlags("run")...),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return once(ctx, cmd, args)
		},
	}
}

// rememberedFor reads the value of --ttl.
func rememberedFor(text string) (time.Duration, error) {
	if text == "forever" {
		return latchkey.Forever, nil
	}
	d, err := timeOrDays(text)
	if err != nil {
		return 0, errors.New("must be a time such as 10m, 24h or 7d, or forever")
	}
	return d, between(leastTime, mostTime)(d)
}

// forgetOnce forgets the success of a Once.
func forgetOnce(ctx context.Context, cmd *cli.Command, args []string) error {
	before, argv := aroundDashes(cmd, args)
	if len(before) != 1 || len(argv) > 0 {
		return usageError("--forget takes one NAME and no command: latchkey once NAME --forget")
	}
	if err := exclude(cmd, "forget", "ttl"); err != nil {
		return err
	}
	name := before[0]
	return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
		o := client.NewOnce(name, latchkey.Forever) // it stores nothing, so the time does not matter
		_, done, err := o.Result(ctx)
		text := "had not succeeded: there was nothing to forget"
		if done {
			text, err = "is forgotten", o.Forget(ctx)
		}
		if err != nil {
			return libraryError(err)
		}
		return writeLines(cmd.Root().Writer, printable(name)+" "+text+"\n")
	})
}

func once(ctx context.Context, cmd *cli.Command, args []string) error {
	if cmd.Bool("forget") {
		return forgetOnce(ctx, cmd, args)
	}
	if !cmd.IsSet("ttl") {
		return usageError("--ttl is missing; see latchkey once --help")
	}
	name, argv, err := nameAndCommand(cmd, args, "")
	if err != nil {
		return err
	}
	j, err := newJob(cmd, argv)
	if err != nil {
		return err
	}
	ttl, err := rememberedFor(cmd.String("ttl"))
	if err != nil {
		return err
	}
	output, err := captureOutput(os.Stdout)
	if err != nil {
		return err
	}
	j.thing = fmt.Sprintf("the run of %q", name)
	j.waitsFor = printable(name)
	j.busy, j.occupants = fmt.Sprintf("%q is run by", name), occupantsOf(name)
	j.stdout = output.file
	j.open = func(_ context.Context, client *latchkey.Client) (door, error) {
		return onceDoor{client.NewOnce(name, ttl), lockNotes(cmd)}, nil
	}
	j.environment = func(g guard) []string {
		return append(os.Environ(), tokenEnv+"="+strconv.FormatInt(g.(*onceGuard).Token(), 10))
	}
	j.done = func(g guard, code int) {
		if kept := output.end(j.grace); code == 0 {
			g.(*onceGuard).output = kept
		}
	}
	return j.run(ctx)
}

// onceDoor is a Once, which gives out at most one guard at a time, and none after a success.
type onceDoor struct {
	*latchkey.Once

	always []latchkey.TryLockOption
}

// onceGuard is a run, which is in the background until its release.
type onceGuard struct {
	*latchkey.Hold

	output []byte     // of a command that has succeeded, else nil
	ended  chan error // the command has ended: nil or errNotDone
	over   chan error // the result of the run
}

// errNotDone is the error of a run whose command has failed.
var errNotDone = errors.New("the command has failed")

func (d onceDoor) enter(ctx context.Context, options ...latchkey.WaitOption) (guard, error) {
	g := &onceGuard{ended: make(chan error, 1), over: make(chan error, 1)}
	var stored []byte
	runs := make(chan struct{})
	go func() {
		result, err := d.Do(ctx, func(ctx context.Context) ([]byte, error) {
			g.Hold = d.HoldFrom(ctx)
			close(runs)
			select {
			case err := <-g.ended:
				return g.output, err
			case <-g.Lost():
				return nil, errNotDone
			}
		}, lockOptions(options, d.always)...)
		stored = result
		g.over <- err
	}()
	select {
	case <-runs:
		return g, nil
	case err := <-g.over:
		if err != nil {
			return nil, err
		}
		if _, err := os.Stdout.Write(stored); err != nil {
			return nil, err
		}
		return nil, &exitError{} // 0: there is nothing to run
	}
}

func (d onceDoor) tryEnter(ctx context.Context) (guard, error) { return d.enter(ctx) }

// Release ends the run: done if the command has succeeded.
func (g *onceGuard) Release(ctx context.Context) error {
	if g.output == nil {
		g.ended <- errNotDone
	} else {
		g.ended <- nil
	}
	select {
	case err := <-g.over:
		switch {
		case errors.Is(err, latchkey.ErrLost) || errors.Is(err, latchkey.ErrClosed):
			return fmt.Errorf("%w: %w", latchkey.ErrNotHeld, err)
		case errors.Is(err, errNotDone) && !errors.Is(err, latchkey.ErrUnknownOutcome):
			return nil
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
