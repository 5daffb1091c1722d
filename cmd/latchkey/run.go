package main

import (
	"context"
	"os"
	"strconv"

	"github.com/urfave/cli/v3"
)

const tokenEnv = "LATCHKEY_TOKEN"

func runCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a command while holding a lock",
		UsageText: "latchkey run NAME [flags] -- CMD [ARGS…]",
		Description: `Waits for the lock, runs the command, and releases the lock when the command has
ended, however it ended. The lease is renewed as long as the command runs. If this
program is killed, the lock becomes free when the lease ends.

  latchkey run backup --no-wait -- pg_dump -f shop.sql shop
  latchkey run catalog --read -- ./export

Many commands with --read run at once, but none while a command with --write runs.
A name belongs to one kind of lock: always use it with --read or --write, or never.
With --fenced, ` + tokenEnv + ` in the command's environment contains
the fencing token. For a job that many machines start at the same time, use
latchkey cron.

` + jobHelp("lock", "75 when\nit was not acquired in time", ""),
		Flags: append(append([]cli.Flag{
			&cli.StringFlag{Name: "lock", Usage: "same as the argument `NAME`"},
		}, lockFlags()...), jobFlags("lock")...),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return runAction(ctx, cmd, args)
		},
	}
}

func runAction(ctx context.Context, cmd *cli.Command, args []string) error {
	name, argv, err := nameAndCommand(cmd, args, "lock")
	if err != nil {
		return err
	}
	j, err := newJob(cmd, argv)
	if err != nil {
		return err
	}
	if err := j.behindLock(name); err != nil {
		return err
	}
	j.environment = func(g guard) []string {
		if !cmd.Bool("fenced") {
			return os.Environ()
		}
		return append(os.Environ(), tokenEnv+"="+strconv.FormatInt(g.(lockGuard).Token(), 10))
	}
	return j.run(ctx)
}
