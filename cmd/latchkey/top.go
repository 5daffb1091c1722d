package main

import (
	"context"
	"os"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const (
	topEvery  = 2 * time.Second
	topOftest = 200 * time.Millisecond
)

func topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "show what is locked, live: waiters, holders, ages, rates",
		ArgsUsage: "[PREFIX]",
		Description: `Shows all objects whose names begin with PREFIX, and looks again every 2 seconds.
Each look walks all keys of the server in small pieces.

HOLD    how many hold a lock; permits acquired, of all; what is left to count of
        a latch; parties that wait at a barrier, of all
WAIT    how many wait: owners in queues, or clients that listen, which they do
        for some seconds after the last wait, too
TTL     until the key expires, unless it is renewed
HELD    for how long top has seen the same holders, which may have come before
ACQ/S   holders seen a second that the look before did not see; one that comes and
        goes between two looks is not seen
LOST/S  holders gone a second whose lease may have run out between two looks; the
        others have released, or were forced to; of a lock that more than 64 hold,
        ACQ/S and LOST/S only compare how many do

Keys: up, down, page up, page down, home, end; enter shows one object; sort by w
(waiters) h (holders) a (held) t (TTL) c (ACQ/S) l (LOST/S) n (name), once more
turns the order around; / filters, f takes a lock away, after a question; p pauses,
space looks at once, Ctrl-Z stops top until fg, q quits.

  latchkey top
  latchkey top orders: --every 500ms`,
		Flags: []cli.Flag{
			prefixFlag(),
			matchFlag(),
			everyFlag(topEvery, topOftest),
		},
		Action: top,
	}
}

func top(ctx context.Context, cmd *cli.Command) error {
	pattern, err := patternOf(cmd)
	if err != nil {
		return err
	}
	if !isTerminal(cmd.Root().Writer) || !isTerminal(os.Stdin) {
		return usageError("top needs a terminal; to list the same once: latchkey ls")
	}
	return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
		screen, err := tcell.NewScreen()
		if err != nil {
			return err
		}
		if err := screen.Init(); err != nil {
			return err
		}
		defer screen.Fini()
		v := &topView{screen: screen, client: client, pattern: pattern, every: cmd.Duration("every"), list: newTopList()}
		return v.run(ctx)
	})
}
