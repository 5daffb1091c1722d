package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func latchCommand() *cli.Command {
	return group("latch", "let programs wait until something has happened N times", `One program sets the latch, others count it down, and waiting programs continue when
the count reaches 0.

  latchkey latch set ready 2
  latchkey latch wait ready --wait 60s && ./start
  latchkey latch down ready --as database`,
		latchSetCommand(),
		latchDownCommand(),
		latchWaitCommand(),
		latchInspectCommand(),
		latchDeleteCommand(),
	)
}

func latchSetCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "close a latch until it is counted down N times",
		ArgsUsage: "NAME N",
		Description: `Prints the latch as inspect does. A latch that is already closed is left unchanged,
and a line on standard error says so. The exit code is still 0, so several programs
can all begin with this command.

With --ttl, the latch is deleted after that time. Programs that are waiting for it
exit with 76.

  latchkey latch set ready 3 --ttl 1h`,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "ttl", Usage: "delete the latch after `TIME`", DefaultText: "never",
				Validator: between(leastTime, mostTime)},
			jsonFlag(),
		},
		Action: latchSet,
	}
}

func latchSet(ctx context.Context, cmd *cli.Command) error {
	name, n, err := nameAndNumber(cmd)
	if err != nil {
		return err
	}
	var options []latchkey.SetOption
	if cmd.IsSet("ttl") {
		options = append(options, latchkey.TTL(cmd.Duration("ttl")))
	}
	return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
		l := client.NewCountDownLatch(name)
		done, err := l.TrySetCount(ctx, n, options...)
		if err != nil {
			return libraryError(err)
		}
		if !done {
			say(cmd.Root().ErrWriter, "%q was already closed and is unchanged", name)
		}
		return showLatch(ctx, cmd, l)
	})
}

func latchDownCommand() *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "count a latch down",
		ArgsUsage: "NAME",
		Description: `Counts once, or N times, and prints the remaining count as inspect does. At 0 the
latch opens. If the latch is open, the command does nothing.

With --as, only the first count of each participant has an effect, so a restarted
program can do its work and count again. It also makes it safe to repeat a count
after exit code 69, which does not say whether the count arrived.

Exit code: 70 when the latch is not set, 76 when it has expired.

  latchkey latch down ready
  latchkey latch down ready --as database`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "n", Usage: "count `N` times at once", Value: 1, Validator: atLeast(1)},
			&cli.StringFlag{Name: "as", Usage: "count once for this `PARTICIPANT`"},
			jsonFlag(),
		},
		Action: atName(latchDown, "n", "as"),
	}
}

func latchDown(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	l := client.NewCountDownLatch(name)
	var left int
	var err error
	if cmd.IsSet("as") {
		left, err = l.CountDownAs(ctx, cmd.String("as"))
	} else {
		left, err = l.CountDownN(ctx, cmd.Int("n"))
	}
	if err != nil {
		return libraryError(err)
	}
	return writeLatch(cmd, latchOf(name, left))
}

func latchWaitCommand() *cli.Command {
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait until a latch is open, as in start scripts",
		ArgsUsage: "NAME",
		Description: `Waits until the latch has been counted down. If it is not set yet, also waits until
it is set. It returns at once if the latch is already open.

Exit code: 0 when the latch is open; 75 when it did not open in time; 76 when it was
deleted or expired before it opened; 128+n when signal n ended the
wait; 69 when the server cannot be reached; 64 for a mistake on the command line.

  latchkey latch wait ready --wait 60s && ./start`,
		Flags:  []cli.Flag{waitFlag("give up after `TIME` with exit code 75; 0s checks without waiting", 0)},
		Action: atName(latchWait),
	}
}

func latchWait(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	limit := cmd.Duration("wait")
	l := client.NewCountDownLatch(name)
	if cmd.IsSet("wait") && limit == 0 {
		left, err := l.Count(ctx)
		if left > 0 {
			err = latchkey.ErrNotAcquired
		}
		return awaited(err, name, limit, true)
	}
	options := []latchkey.AwaitOption{latchkey.AwaitSet()}
	if limit > 0 {
		options = append(options, latchkey.Wait(limit))
	}
	var err error
	sayWhile(ctx, cmd.Root().ErrWriter, func(ctx context.Context) string {
		switch left, err := l.Count(ctx); {
		case err == nil && left > 0:
			return fmt.Sprintf("waiting for %s, remaining count: %d", printable(name), left)
		case errors.Is(err, latchkey.ErrNotSet):
			return fmt.Sprintf("waiting for %s, which is not set", printable(name))
		}
		return "waiting for " + printable(name)
	}, func() { err = l.Await(ctx, options...) })
	return awaited(err, name, limit, false)
}

// awaited gives the result of a wait its exit code. A call that only looks does not wait
// until the latch is set, but gets the same exit code as a short wait.
func awaited(err error, name string, limit time.Duration, onlyLooks bool) error {
	busy, notSet := errors.Is(err, latchkey.ErrNotAcquired), errors.Is(err, latchkey.ErrNotSet)
	switch {
	case busy && !notSet:
		return exitWith(exitNotAcquired, "%q is closed, waited %s", name, timeText(limit))
	case busy, onlyLooks && (notSet || errors.Is(err, latchkey.ErrGone)):
		return exitWith(exitNotAcquired, "%q is not set, waited %s", name, timeText(limit))
	default:
		return libraryError(err)
	}
}

func latchInspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show whether a latch is open, and its remaining count",
		ArgsUsage: "NAME",
		Description: `Read-only. A latch that is not set, or that has expired, is not an error: exit
code 0.

  latchkey latch inspect ready`,
		Flags: []cli.Flag{jsonFlag()},
		Action: atName(func(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
			return showLatch(ctx, cmd, client.NewCountDownLatch(name))
		}),
	}
}

func latchDeleteCommand() *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete a latch, open or closed",
		ArgsUsage: "NAME",
		Description: `Programs that are waiting for it exit with 76. Programs that come later wait until
it is set again. Deleting a latch that does not exist is not an error: exit code 0.

  latchkey latch delete ready`,
		Flags: []cli.Flag{jsonFlag()},
		Action: atName(func(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
			return deleteObject(ctx, cmd, client.NewCountDownLatch(name))
		}),
	}
}

// latchReply is what --json prints for a latch; fields may be added to it, not
// changed.
type latchReply struct {
	Name  string `json:"name"`
	State string `json:"state"` // closed, open, unset or expired
	Left  int    `json:"left"`
}

func latchOf(name string, left int) latchReply {
	if left > 0 {
		return latchReply{Name: name, State: "closed", Left: left}
	}
	return latchReply{Name: name, State: "open"}
}

func showLatch(ctx context.Context, cmd *cli.Command, l *latchkey.CountDownLatch) error {
	left, err := l.Count(ctx)
	switch {
	case errors.Is(err, latchkey.ErrNotSet):
		return writeLatch(cmd, latchReply{Name: l.Name(), State: "unset"})
	case errors.Is(err, latchkey.ErrGone):
		return writeLatch(cmd, latchReply{Name: l.Name(), State: "expired"})
	case err != nil:
		return libraryError(err)
	}
	return writeLatch(cmd, latchOf(l.Name(), left))
}

func writeLatch(cmd *cli.Command, reply latchReply) error {
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		return writeJSON(out, reply)
	}
	text := map[string]string{
		"closed":  fmt.Sprintf("is closed, remaining count: %d", reply.Left),
		"open":    "is open",
		"unset":   "is not set",
		"expired": "has expired",
	}[reply.State]
	_, err := fmt.Fprintf(out, "%s %s\n", reply.Name, text)
	return err
}
