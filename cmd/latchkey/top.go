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

// topHelp explains the columns and the keys.
const topHelp = columnsHelp + `
HELD     how long top has seen the same holders

A narrow screen has no HELD, then no TTL, KIND and HOLDERS, but always the column that
sorts the rows.

Keys: up, down, page up, page down, home, end; enter shows one object; sort by w
(waiters) h (holders) a (held) t (TTL) n (name), the same key again reverses the
order; / filters; f takes a lock from its holders if you confirm; p pauses; space
polls at once; Ctrl-Z stops top until fg; ? shows this; q quits.`

func topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "show what is locked, live: holders, waiters, ages",
		ArgsUsage: "[PREFIX]",
		Description: `Shows all objects whose names begin with PREFIX, and polls every 2 seconds. Each poll
scans all keys of the server in small batches.

` + topHelp + `

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
		return usageError("top needs a terminal; for the same list without one: latchkey ls")
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
