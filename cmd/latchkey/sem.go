package main

import (
	"context"
	"strconv"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func semCommand(args []string) *cli.Command {
	return group("sem", "limit how many programs work at once, across all machines", `A semaphore has permits; each working program holds one.

  latchkey sem run imports --permits 3 -- ./import
  latchkey sem inspect imports`,
		semRunCommand(args),
		semInspectCommand(),
		semReleaseCommand(),
		semSetCommand(),
		semDeleteCommand(),
	)
}

func semSetCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "set the number of permits of a semaphore",
		ArgsUsage: "NAME N",
		Description: `Changes the number of permits, or creates the semaphore, and prints it as inspect
does. If more permits are held than that, no holder loses one, but none is granted until
enough are released; 0 lets running commands finish and starts no new ones.

  latchkey sem set imports 8`,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			name, permits, err := nameAndNumber(cmd)
			if err != nil {
				return err
			}
			return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
				if err := setPermits(ctx, client, name, permits); err != nil {
					return libraryError(err)
				}
				return showSemaphore(ctx, cmd, client, name)
			})
		},
	}
}

func semDeleteCommand() *cli.Command {
	return &cli.Command{
		Name:      "delete",
		Usage:     "delete a semaphore and its permits",
		ArgsUsage: "NAME",
		Description: `Commands that hold a permit are ended at their next renewal, within a third of their
lease. Commands that wait for a permit exit with 70. The next sem run sets the
semaphore again. Deleting a semaphore that does not exist is not an error: exit
code 0.

  latchkey sem delete imports`,
		Flags: []cli.Flag{jsonFlag()},
		Action: atName(func(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
			plain, err := plainSemaphore(ctx, client, name)
			switch {
			case err != nil:
				return libraryError(err)
			case plain != nil:
				return deleteObject(ctx, cmd, plain)
			}
			return deleteObject(ctx, cmd, client.NewPermitSemaphore(name))
		}),
	}
}

// nameAndNumber returns the two arguments of a command that sets something.
func nameAndNumber(cmd *cli.Command) (string, int, error) {
	if cmd.Args().Len() != 2 {
		return "", 0, usageError("%s takes a NAME and a number, not %d arguments; see %s --help",
			cmd.Name, cmd.Args().Len(), cmd.FullName())
	}
	number, err := strconv.Atoi(cmd.Args().Get(1))
	if err != nil {
		return "", 0, usageError("%q is not a number; see %s --help", cmd.Args().Get(1), cmd.FullName())
	}
	return cmd.Args().First(), number, nil
}

// plainSemaphore returns the semaphore with that name if it is one of NewSemaphore, whose permits
// have no leases, and nil otherwise. A semaphore of Redisson is not recognized.
func plainSemaphore(ctx context.Context, client *latchkey.Client, name string) (*latchkey.Semaphore, error) {
	if found, err := client.Inspect(ctx, name); err != nil || found.What != "a semaphore" {
		return nil, err
	}
	return client.NewSemaphore(name), nil
}

// setPermits sets how many permits a semaphore has, of either kind.
func setPermits(ctx context.Context, client *latchkey.Client, name string, n int) error {
	plain, err := plainSemaphore(ctx, client, name)
	switch {
	case err != nil:
		return err
	case plain != nil:
		return plain.SetPermits(ctx, n)
	}
	return client.NewPermitSemaphore(name).SetPermits(ctx, n)
}
