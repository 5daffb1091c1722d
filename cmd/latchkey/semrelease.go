package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func semReleaseCommand() *cli.Command {
	return &cli.Command{
		Name:      "release",
		Usage:     "take permits from their holders",
		ArgsUsage: "NAME ID…",
		Description: `Releases permits by the ids that sem inspect shows, without notifying their holders. A
holder that renews its permit notices at its next renewal, within a third of its lease; one with a
fixed lease notices only when it releases the permit. Until then it may keep working as if it held
the permit. Use it when a holder is known to be gone and its lease is long or never ends.
An id that is not held is not an error: exit code 0. The permits of NewSemaphore have no
ids: exit code 70.

  latchkey sem inspect imports
  latchkey sem release --force imports 42b1f7f3c6ed0f1c9ad6fe14f8c3e5a7`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "confirm that holders lose their permits"},
			jsonFlag(),
		},
		Action: semRelease,
	}
}

// semReleaseReply is what sem release --json prints.
type semReleaseReply struct {
	Name    string           `json:"name"`
	Permits []releasedPermit `json:"permits"`
}

type releasedPermit struct {
	ID   string `json:"id"`
	Held bool   `json:"was_held"`
}

func semRelease(ctx context.Context, cmd *cli.Command) error {
	name, ids := cmd.Args().First(), cmd.Args().Tail()
	if len(ids) == 0 {
		return usageError("release takes a NAME and the ids of permits; see %s --help", cmd.FullName())
	}
	if !cmd.Bool("force") {
		return usageError("sem release would take permits of %q from holders that may be working; "+
			"check with: latchkey sem inspect %[1]s; then, if you are sure, add --force", name)
	}
	named := map[string]bool{}
	ids = slices.DeleteFunc(ids, func(id string) bool { again := named[id]; named[id] = true; return again })
	return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
		switch plain, err := plainSemaphore(ctx, client, name); {
		case err != nil:
			return libraryError(err)
		case plain != nil:
			return exitWith(exitSoftware, "the permits of %q have no ids, because it is a semaphore of NewSemaphore: "+
				"a program gives them back with Release", name)
		}
		states, err := client.NewPermitSemaphore(name).Release(ctx, ids...)
		switch {
		case states == nil:
			return libraryError(err)
		case !slices.Contains(states, latchkey.PermitUndecided):
			err = nil // some were not held
		}
		return errors.Join(newSemReleaseReply(name, ids, states).write(cmd), libraryError(err))
	})
}

// newSemReleaseReply returns the reply about the permits whose outcome is known.
func newSemReleaseReply(name string, ids []string, states []latchkey.PermitState) semReleaseReply {
	reply := semReleaseReply{Name: name}
	for i, state := range states {
		if state != latchkey.PermitUndecided {
			reply.Permits = append(reply.Permits, releasedPermit{ids[i], state == latchkey.PermitReleased})
		}
	}
	return reply
}

func (r semReleaseReply) write(cmd *cli.Command) error {
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		return writeJSON(out, r)
	}
	text := ""
	for _, p := range r.Permits {
		if p.Held {
			text += fmt.Sprintf("%s is released\n", printable(p.ID))
		} else {
			text += fmt.Sprintf("%s was not held\n", printable(p.ID))
		}
	}
	return writeLines(out, text)
}
