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
		Usage:     "take a lock from its holders",
		ArgsUsage: "NAME",
		Description: `Takes the lock without notifying its holders. Holders that use this library notice
at their next renewal, within a third of their lease; until then they may keep
working as if they held the lock. Use it when a holder is known to be gone and its lease is long.
A lock that is already free is not an error: exit code 0.

  latchkey inspect orders:42
  latchkey unlock --force orders:42

An object that is not a lock is left unchanged: exit code 70. A mutex is a string in
Redis, and application data can look the same, so a mutex is removed only with
--kind mutex.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "confirm that holders lose the lock"},
			&cli.StringFlag{Name: "kind", Usage: "only if it is of this `KIND`: mutex, lock or rwlock"},
			jsonFlag(),
		},
		Action: unlock,
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
		return usageError("unlock would take %q from a holder that may be working; "+
			"check with: latchkey inspect %[1]s; then, if you are sure: latchkey unlock --force %[1]s", name)
	}
	force, err := forceBy(cmd.String("kind"))
	if err != nil {
		return err
	}
	return query(ctx, cmd, func(client *latchkey.Client) error {
		held, err := force(ctx, client, name)
		if err != nil {
			return err
		}
		return writeUnlocked(cmd, unlockReply{Name: name, Held: held})
	})
}

type forcing func(ctx context.Context, client *latchkey.Client, name string) (held bool, err error)

// forceBy returns the function that forces a lock of that kind. Without a kind, the key shows it.
func forceBy(kind string) (forcing, error) {
	switch kind {
	case "":
		return forceByKey, nil
	case string(latchkey.KindMutex):
		return func(ctx context.Context, client *latchkey.Client, name string) (bool, error) {
			held, err := client.NewMutex(name).ForceUnlock(ctx)
			return held, libraryError(err)
		}, nil
	case string(latchkey.KindLock):
		return func(ctx context.Context, client *latchkey.Client, name string) (bool, error) {
			held, err := client.NewLock(name).ForceUnlock(ctx)
			return held, libraryError(err)
		}, nil
	case string(latchkey.KindRWLock):
		return forceBothSides, nil
	}
	return nil, usageError("--kind %q: must be mutex, lock or rwlock", kind)
}

// forceByKey forces the lock under a key. It refuses a mutex, which cannot be distinguished from
// data of an application.
func forceByKey(ctx context.Context, client *latchkey.Client, name string) (bool, error) {
	found, err := client.Inspect(ctx, name)
	if err != nil {
		return false, libraryError(err)
	}
	switch {
	case isDone(found):
		return false, exitWith(exitSoftware, "%q is a Once that is done, not a lock; to forget its success: "+
			"latchkey once %[1]s --forget", name)
	case found.Kind == latchkey.KindOnce:
		return false, exitWith(exitSoftware, "%q is a Once, not a lock; to stop it, end its process", name)
	case found.Kind == latchkey.KindMutex:
		return false, exitWith(exitSoftware, "%q is a string with the value %.80q, which may be a mutex or application data; "+
			"if it is a mutex: latchkey unlock --force --kind mutex %[1]s", name, found.Holders[0].Owner.String())
	}
	held, err := client.ForceUnlock(ctx, name)
	return held, libraryError(err)
}

func forceBothSides(ctx context.Context, client *latchkey.Client, name string) (bool, error) {
	lock := client.NewRWLock(name)
	wrote, err := lock.Writer().ForceUnlock(ctx)
	if err != nil {
		return wrote, libraryError(err)
	}
	read, err := lock.Reader().ForceUnlock(ctx)
	return wrote || read, libraryError(err)
}

func writeUnlocked(cmd *cli.Command, reply unlockReply) error {
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		return writeJSON(out, reply)
	}
	text := "was already free"
	if reply.Held {
		text = "is unlocked"
	}
	_, err := fmt.Fprintf(out, "%s %s\n", reply.Name, text)
	return err
}
