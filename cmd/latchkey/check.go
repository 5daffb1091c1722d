package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "try out whether the server does and permits what locks need",
		Description: `Takes, renews and releases a lock of a name of its own, publishes, subscribes, and
asks whether the server evicts keys. It also tries to list objects, which needs
the permission for SCAN; without it, everything but ls and top works.

Exit code: 0 when all is well, 69 when something is wrong or the server cannot
be reached; a line for each says what to do.`,
		OnUsageError: onUsageError,
		Action:       check,
	}
}

func check(ctx context.Context, cmd *cli.Command) error {
	if cmd.Args().Present() {
		return usageError("check takes no arguments; see %s --help", cmd.FullName())
	}
	return query(ctx, cmd, func(client *latchkey.Client) error {
		out := cmd.Root().Writer
		err := client.Check(ctx)
		if err == nil {
			_, err = fmt.Fprintln(out, "locks, renewal, messages and eviction: well")
			for _, failed := range client.Objects(ctx, "latchkey:check:*") {
				if failed != nil {
					_, err = fmt.Fprintf(out, "ls and top: %v\n  give the user +scan\n", failed)
				}
				break
			}
			return err
		}
		_, _ = fmt.Fprintf(out, "%s\n", advice(err))
		return silently(exitUnavailable)
	})
}

// advice is what is wrong, a line each, and what to do about it.
func advice(err error) string {
	text := err.Error()
	for _, known := range [][2]string{
		{"NOPERM", "give the user the permissions of docs/operations.md"},
		{"maxmemory-policy", "set maxmemory-policy noeviction, or give locks a server of their own"},
		{"OOM ", "the server is out of memory: give it more, or remove what is not needed"},
		{"READONLY", "this is a replica: connect to the master, or by way of Sentinel"},
	} {
		if strings.Contains(text, known[0]) {
			text += "\n  " + known[1]
		}
	}
	return text
}
