package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const defaultAtLeast = time.Minute

func cronCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "cron",
		Usage:     "run a command once, even if many machines start it",
		UsageText: "latchkey cron [--at-least 1m] NAME -- CMD [ARGS…]",
		Description: `Makes one attempt to acquire the lock NAME. If it succeeds, the command runs. The
lock is kept for --at-least, counted from the start, even if the command ends
earlier or this machine dies. If the attempt fails, the command is running or has
run elsewhere, and the exit code is 0. A message says so only on a terminal, so that
cron sends no mail. See --conflict-exit-code and --verbose.

Put the same line into the crontab of each machine:

  0 3 * * *  latchkey cron --at-least 10m nightly -- /usr/local/bin/report

The clocks of the machines may differ by up to --at-least, which must be shorter
than the time between two runs. --at-least does not limit the command: a longer
command keeps the lock, which is renewed, until it ends, and runs that are due in
that time are skipped. A run that fails is not repeated elsewhere.

` + jobHelp("lock", "0, or the\nN of --conflict-exit-code, when the command runs elsewhere", ""),
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "at-least", Usage: "`TIME` for which the lock is kept, from the start", Value: defaultAtLeast, DefaultText: timeText(defaultAtLeast),
				Validator: between(leastTime, mostTime)},
			&cli.IntFlag{Name: "conflict-exit-code", Usage: "exit with `N` when the command runs elsewhere", Validator: between(0, 255)},
		}, guardFlags("lock")...),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return cron(ctx, cmd, args)
		},
	}
}

func cron(ctx context.Context, cmd *cli.Command, args []string) error {
	name, argv, err := nameAndCommand(cmd, args, "")
	if err != nil {
		return err
	}
	atLeast, conflict := cmd.Duration("at-least"), cmd.Int("conflict-exit-code")
	j := job{cmd: cmd, once: true, lease: cmd.Duration("lease"), grace: cmd.Duration("grace"), argv: argv}
	j.thing = fmt.Sprintf("the lock %q", name)
	j.busy = fmt.Sprintf("%q is running elsewhere, or ran less than %s ago:", name, timeText(atLeast))
	j.occupants = occupantsOf(name)
	j.refused = func(text string) error {
		if conflict != 0 || cmd.Bool("verbose") || isTerminal(cmd.Root().ErrWriter) {
			j.say("%s", text)
		}
		return &exitError{code: conflict}
	}
	j.open = func(_ context.Context, client *latchkey.Client) (door, error) {
		return lockDoor{client.NewLock(name), append(lockNotes(cmd), latchkey.AtLeast(atLeast))}, nil
	}
	j.environment = func(guard) []string { return os.Environ() }
	return j.run(ctx)
}
