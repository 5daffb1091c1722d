package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func barrierCommand() *cli.Command {
	return group("barrier", "let programs wait for each other", `Each program waits at the barrier until all others have arrived.

  ./load && latchkey barrier wait loaded --parties 4 && ./compute`,
		barrierWaitCommand(),
		barrierInspectCommand(),
		barrierResetCommand(),
	)
}

func barrierWaitCommand() *cli.Command {
	timeout := waitFlag("give up after `TIME` with exit code 75", time.Millisecond)
	timeout.Aliases = []string{"timeout"}
	return &cli.Command{
		Name:      "wait",
		Usage:     "wait until N programs have arrived",
		ArgsUsage: "NAME",
		Description: `Waits until N programs have arrived; then all continue, and the barrier can be used
again. --json prints the generation and the index of this program, from 0. The
program with the last index can do work that only one should do.

Exit code: 0 when all have arrived; 75 when not all arrived in time, and the others
then exit with 76; 76 when another program gave up or crashed, or the barrier was
reset; 128+n when signal n ended the wait; 69 when the server cannot be reached;
64 for a mistake on the command line, or a different number of parties.

  latchkey barrier wait loaded --parties 4 --wait 60s`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "parties", Usage: "wait for `N` programs, including this one", Required: true, Validator: atLeast(1)},
			timeout,
			jsonFlag(),
		},
		Action: atName(barrierWait),
	}
}

// arrivalReply is what barrier wait --json prints.
type arrivalReply struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Index      int    `json:"index"`
	Parties    int    `json:"parties"`
}

func barrierWait(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	var options []latchkey.WaitOption
	limit := cmd.Duration("wait")
	if cmd.IsSet("wait") {
		options = append(options, latchkey.Wait(limit))
	}
	b := client.NewBarrier(name, cmd.Int("parties"))
	var a latchkey.Arrival
	var err error
	sayWhile(ctx, cmd.Root().ErrWriter, func(ctx context.Context) string {
		text := "waiting for " + printable(name)
		if s, err := b.State(ctx); err == nil && s.Waiting > 0 {
			text += fmt.Sprintf(", %d of %d wait", s.Waiting, s.Parties)
		}
		return text
	}, func() { a, err = b.Await(ctx, options...) })
	if err != nil {
		return notTogether(err, name, limit)
	}
	if cmd.Bool("json") {
		return writeJSON(cmd.Root().Writer, arrivalReply{Name: name, Generation: a.Generation, Index: a.Index, Parties: b.Parties()})
	}
	return nil
}

// notTogether returns the error of a failed wait, with its exit code.
func notTogether(err error, name string, limit time.Duration) error {
	if errors.Is(err, latchkey.ErrNotAcquired) {
		return exitWith(exitNotAcquired, "not all arrived at %q, waited %s", name, timeText(limit))
	}
	return libraryError(err)
}

// barrierReply is what barrier inspect --json prints; fields may be added to it, not changed.
type barrierReply struct {
	Name       string       `json:"name"`
	Generation int64        `json:"generation"`
	Parties    int          `json:"parties"` // 0 if not decided yet
	Waiting    int          `json:"waiting"`
	Who        []partyReply `json:"who"`
}

type partyReply struct {
	Owner   latchkey.Owner `json:"owner"`
	Label   string         `json:"label,omitempty"`   // of its client
	Lease   int64          `json:"lease_ms"`          // remaining
	Running bool           `json:"running,omitempty"` // the function of its Do
}

func barrierInspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show who waits at a barrier",
		ArgsUsage: "NAME",
		Description: `Read-only. A barrier at which nobody waits is not an error: exit code 0.

  latchkey barrier inspect loaded`,
		Flags:  []cli.Flag{jsonFlag()},
		Action: atName(barrierInspect),
	}
}

func barrierInspect(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	s, err := client.NewBarrier(name, 1).State(ctx)
	if err != nil {
		return libraryError(err)
	}
	reply := barrierReply{Name: name, Generation: s.Generation, Parties: s.Parties, Waiting: s.Waiting, Who: []partyReply{}}
	for _, p := range s.Who {
		reply.Who = append(reply.Who, partyReply{p.Owner, p.Label, p.Lease.Milliseconds(), p.Running})
	}
	return writeBarrier(cmd, reply)
}

func writeBarrier(cmd *cli.Command, reply barrierReply) error {
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		return writeJSON(out, reply)
	}
	text := fmt.Sprintf("%d of %d wait", reply.Waiting, reply.Parties)
	if reply.Waiting == 0 {
		text = "nobody waits"
	}
	text = fmt.Sprintf("%s: %s\n", reply.Name, text)
	for _, p := range reply.Who {
		lease := time.Duration(p.Lease) * time.Millisecond
		text += fmt.Sprintf("  %s%s, expires in %s unless renewed\n", ownerText(p.Label, p.Owner.String()), map[bool]string{true: ", running"}[p.Running], timeText(lease.Round(100*time.Millisecond)))
	}
	return writeLines(out, text)
}

func barrierResetCommand() *cli.Command {
	return &cli.Command{
		Name:      "reset",
		Usage:     "end all waits at a barrier",
		ArgsUsage: "NAME",
		Description: `Waiting programs exit with 76. The barrier forgets its number of parties. If nobody
waits, that is not an error: exit code 0.

  latchkey barrier reset loaded`,
		Action: atName(func(ctx context.Context, _ *cli.Command, client *latchkey.Client, name string) error {
			return libraryError(client.NewBarrier(name, 1).Reset(ctx))
		}),
	}
}
