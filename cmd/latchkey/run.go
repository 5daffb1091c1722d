package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const tokenEnv = "LATCHKEY_TOKEN"

func runCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a command while holding a lock",
		UsageText: "latchkey run --lock NAME [flags] -- CMD [ARGS…]",
		Description: `Waits for the lock, runs the command, and releases the lock when the command
has ended, however it ended. The lease is renewed for as long as the command
runs; if this program is killed, the lock comes back when the lease is over.

  latchkey run --lock backup --no-wait -- pg_dump -f shop.sql shop
  latchkey run --lock catalog --read -- ./export

With --read many such commands run at once, and none while one with --write
does. A name belongs to one kind of lock: use it with --read and --write, or
without both. For a job that is due on many machines at the same time, there is
latchkey cron.

` + jobHelp("lock", "75 when\nit was not acquired in time", ""),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "lock", Usage: "`NAME` of the lock"},
			&cli.BoolFlag{Name: "fair", Usage: "first come, first served, on all machines"},
			&cli.BoolFlag{Name: "read", Usage: "the lock to read, of a read/write lock, which many may have"},
			&cli.BoolFlag{Name: "write", Usage: "the lock to write, of a read/write lock"},
			&cli.BoolFlag{Name: "fenced", Usage: "take a fencing token and put it into " + tokenEnv},
		}, jobFlags("lock")...),
		HideHelpCommand: true,
		OnUsageError:    onUsageError,
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return runAction(ctx, cmd, args)
		},
	}
}

func runAction(ctx context.Context, cmd *cli.Command, args []string) error {
	name := cmd.String("lock")
	if name == "" {
		return usageError("run needs --lock NAME; see latchkey run --help")
	}
	j, err := jobFrom(cmd, cmd.Args().Slice(), args, "run --lock "+name)
	if err != nil {
		return err
	}
	j.thing = fmt.Sprintf("the lock %q", name)
	j.busy = fmt.Sprintf("%q is held by somebody else", name)
	fenced := cmd.Bool("fenced")
	lock, err := lockBy(cmd)
	if err != nil {
		return err
	}
	j.open = func(_ context.Context, client *latchkey.Client) (door, error) {
		return lockDoor{lock(client, name), lockNotes(cmd)}, nil
	}
	j.environment = func(g guard) []string {
		if !fenced {
			return os.Environ()
		}
		return append(os.Environ(), tokenEnv+"="+strconv.FormatInt(g.(lockGuard).Token(), 10))
	}
	return j.run(ctx)
}

// lockBy is the kind of lock that the flags ask for.
func lockBy(cmd *cli.Command) (func(*latchkey.Client, string) latchkey.Locker, error) {
	fair, read, write, fenced := cmd.Bool("fair"), cmd.Bool("read"), cmd.Bool("write"), cmd.Bool("fenced")
	switch {
	case read && write:
		return nil, usageError("--read and --write exclude each other")
	case (read || write) && (fair || fenced):
		return nil, usageError("a read/write lock is neither --fair nor --fenced")
	case read:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Reader() }, nil
	case write:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Writer() }, nil
	case fair && fenced:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFencedFairLock(name) }, nil
	case fair:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFairLock(name) }, nil
	case fenced:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFencedLock(name) }, nil
	}
	return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewLock(name) }, nil
}
