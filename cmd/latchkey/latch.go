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
	return group("latch", "let programs wait until something has happened a number of times", `One sets the latch, others count it down, and those that wait go on when nothing is
left to count.

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
		Usage:     "close a latch until it has been counted down N times",
		ArgsUsage: "NAME N",
		Description: `Shows the latch as inspect does. One that is closed already stays as it is, and a
line on standard error says so; the exit code is 0 all the same, so that each of
several programs may begin with it.

With --ttl the latch goes when the time is over. Programs that wait for it then are
told that it is gone, with exit code 76.

  latchkey latch set ready 3 --ttl 1h`,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "ttl", Usage: "`TIME` for which the latch stays", DefaultText: "until it is deleted",
				Validator: between(latchkey.MinLease, latchkey.MaxLease)},
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
			say(cmd.Root().ErrWriter, "%q was closed already and stays as it is", name)
		}
		return showLatch(ctx, cmd, l)
	})
}

func latchDownCommand() *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "count a latch down",
		ArgsUsage: "NAME",
		Description: `Counts once, or N times, and shows what is left as inspect does. At zero the
latch opens. On one that is open it does nothing.

With --as only the first count of each participant counts, so that a program that
was restarted may do its work, and count, again. That is also the way to repeat a
count after exit code 69: nobody knows then whether it arrived.

Exit code: 70 when nobody has set the latch, 76 when its time is over.

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
		Usage:     "wait until a latch is open, in scripts that start something",
		ArgsUsage: "NAME",
		Description: `Waits until the latch has been counted down, and until it has been set, if nobody
has done that yet. It goes on at once if the latch was opened before.

Exit code: 0 when the latch is open; 75 when it was not in time; 76 when it was
deleted or its time was over before it opened; 128+n when signal n ended the
wait; 69 when the server cannot be reached; 64 for a mistake on the command line.

  latchkey latch wait ready --wait 60s && ./start`,
		Flags:  []cli.Flag{waitFlag("give up after `TIME`, exit code 75; 0s only looks", 0)},
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
	return awaited(l.Await(ctx, options...), name, limit, false)
}

// awaited gives the result of a wait its exit code. A call that only looks does not wait
// until the latch is set, but gets the same exit code as a short wait.
func awaited(err error, name string, limit time.Duration, onlyLooks bool) error {
	busy, notSet := errors.Is(err, latchkey.ErrNotAcquired), errors.Is(err, latchkey.ErrNotSet)
	switch {
	case busy && !notSet:
		return exitWith(exitNotAcquired, "%q is closed, waited %v", name, limit)
	case busy, onlyLooks && (notSet || errors.Is(err, latchkey.ErrGone)):
		return exitWith(exitNotAcquired, "%q is not set, waited %v", name, limit)
	default:
		return libraryError(err)
	}
}

func latchInspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show whether a latch is open, and how much is left to count",
		ArgsUsage: "NAME",
		Description: `Reads only. A latch that nobody has set, or whose time is over, is an answer and
no error: exit code 0.

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
		Usage:     "remove a latch, open or closed",
		ArgsUsage: "NAME",
		Description: `Programs that wait for it are told that it is gone, with exit code 76; those that
come later wait for it to be set again. One that was not there is not an error: exit
code 0.

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
		"closed":  fmt.Sprintf("is closed, left to count: %d", reply.Left),
		"open":    "is open",
		"unset":   "is not set",
		"expired": "has expired",
	}[reply.State]
	_, err := fmt.Fprintf(out, "%s %s\n", reply.Name, text)
	return err
}
