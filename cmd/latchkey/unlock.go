package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func unlockCommand() *cli.Command {
	return &cli.Command{
		Name:      "unlock",
		Usage:     "take a lock away from whoever holds it",
		ArgsUsage: "NAME",
		Description: "Its holders are not asked. Those that use this library learn of it at their next\n" +
			"renewal, within a third of their lease; until then they may go on working as if\n" +
			"they held it. Use it when a holder is known to be gone and its lease is long.\n" +
			"A lock that was free already is no error: exit code 0.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "yes, from under its holders"},
			jsonFlag(),
		},
		OnUsageError: onUsageError,
		Action:       unlock,
	}
}

// unlockReply is what unlock --json prints.
type unlockReply struct {
	Name string `json:"name"`
	Held bool   `json:"was_held"`
}

func unlock(ctx context.Context, cmd *cli.Command) error {
	name, err := oneName(cmd)
	if err != nil {
		return err
	}
	if !cmd.Bool("force") {
		return usageError("unlock would take %q away from a holder that may be at work; "+
			"look with: latchkey inspect %[1]s; then, if you are sure: latchkey unlock --force %[1]s", name)
	}
	return query(ctx, cmd, func(client *latchkey.Client) error {
		held, err := client.ForceUnlock(ctx, name)
		if err != nil {
			return libraryError(err)
		}
		return writeUnlocked(cmd, unlockReply{Name: name, Held: held})
	})
}

func writeUnlocked(cmd *cli.Command, reply unlockReply) error {
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		return writeJSON(out, reply)
	}
	text := "was free already"
	if reply.Held {
		text = "is unlocked"
	}
	_, err := fmt.Fprintf(out, "%s %s\n", reply.Name, text)
	return err
}
