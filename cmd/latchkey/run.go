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
		UsageText: "latchkey run --lock NAME [--wait 10s] [--lease 30s] [--fenced] -- CMD [ARGS…]",
		Description: `Waits for the lock, runs the command, and releases the lock when the command
has ended, however it ended. The lease is renewed for as long as the command
runs; if this program is killed, the lock comes back when the lease is over.

` + jobHelp("lock"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "lock", Usage: "`NAME` of the lock"},
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
	j.open = func(_ context.Context, client *latchkey.Client) (door, error) {
		if fenced {
			return lockDoor{client.NewFencedLock(name)}, nil
		}
		return lockDoor{client.NewLock(name)}, nil
	}
	j.environment = func(g guard) []string {
		if !fenced {
			return os.Environ()
		}
		return append(os.Environ(), tokenEnv+"="+strconv.FormatInt(g.(lockGuard).Token(), 10))
	}
	return j.run(ctx)
}
