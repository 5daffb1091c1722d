package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// lockFlags returns the flags that choose the kind of lock.
func lockFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "fair", Usage: "first come, first served, across all machines"},
		&cli.BoolFlag{Name: "read", Usage: "hold the read side of a read/write lock, which readers share"},
		&cli.BoolFlag{Name: "write", Usage: "hold the write side of a read/write lock"},
		&cli.BoolFlag{Name: "fenced", Usage: "issue a fencing token"},
	}
}

// lockBy returns the constructor of the kind of lock that the flags choose.
func lockBy(cmd *cli.Command) (func(*latchkey.Client, string) latchkey.Locker, error) {
	fair, read, write, fenced := cmd.Bool("fair"), cmd.Bool("read"), cmd.Bool("write"), cmd.Bool("fenced")
	switch {
	case read && write:
		return nil, usageError("--read and --write cannot be used together")
	case (read || write) && (fair || fenced):
		return nil, usageError("a read/write lock cannot be --fair or --fenced")
	case read:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Reader() }, nil
	case write:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewRWLock(name).Writer() }, nil
	case fair && fenced:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFairLock(name, latchkey.Fenced()) }, nil
	case fair:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFairLock(name) }, nil
	case fenced:
		return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewFencedLock(name) }, nil
	}
	return func(c *latchkey.Client, name string) latchkey.Locker { return c.NewLock(name) }, nil
}

// behindLock makes a job run under the lock with that name.
func (j *job) behindLock(name string) error {
	lock, err := lockBy(j.cmd)
	if err != nil {
		return err
	}
	j.thing = fmt.Sprintf("the lock %q", name)
	j.waitsFor = printable(name)
	j.busy, j.occupants = fmt.Sprintf("%q is held by", name), occupantsOf(name)
	j.open = func(_ context.Context, client *latchkey.Client) (door, error) {
		return lockDoor{lock(client, name), lockNotes(j.cmd)}, nil
	}
	return nil
}

func lockCommand() *cli.Command {
	return &cli.Command{
		Name:      "lock",
		Usage:     "hold a lock without running a command",
		ArgsUsage: "NAME",
		Description: `Waits for the lock, prints a line when it has it, and holds the lock until a signal
arrives, or, if standard input is a pipe, until it ends. The lease is renewed
until then. To hold a lock while a command runs, use latchkey run.

Other input is not read and never ends the hold: with /dev/null, a file or a terminal
the lock is held until a signal arrives. /dev/null is the input of a background
command in a script, and of a systemd service.

In a terminal, to keep others out until Ctrl-C:

  latchkey lock deploy

In a bash script, while file descriptor 9 is open, at most until the script ends,
however it ends:

  coproc latchkey lock deploy -n
  read -ru "${COPROC[0]}" held || { echo busy; exit 75; }
  exec 9>&"${COPROC[1]}"-
  ./deploy
  exec 9>&-

Exit code: 0 when standard input has ended; 128+n when signal n arrived; 75 when the
lock was not acquired in time; 76 when it was lost; 69 when the server cannot be
reached; 64 for a mistake on the command line.`,
		Flags:  append(append(lockFlags(), jsonFlag()), acquisitionFlags("lock")...),
		Action: lock,
	}
}

// lockReply is what lock --json prints; fields may be added to it, not changed.
type lockReply struct {
	Name  string         `json:"name"`
	Owner latchkey.Owner `json:"owner"`
	Token int64          `json:"token"` // 0 without --fenced
}

func lock(ctx context.Context, cmd *cli.Command) error {
	name, err := oneName(cmd)
	if err != nil {
		return err
	}
	j, err := newJob(cmd, nil)
	if err != nil {
		return err
	}
	if err := j.behindLock(name); err != nil {
		return err
	}
	signals := catchSignals()
	defer signals.release()
	client, g, err := j.enter(ctx, signals, nil)
	if err != nil {
		return err
	}
	defer closeClient(client)
	hold := g.(lockGuard)
	if err := writeLocked(cmd, lockReply{Name: name, Owner: hold.Share(), Token: hold.Token()}); err != nil {
		_ = release(g)
		return err
	}
	code := 0
	select {
	case <-inputEnd():
	case sig := <-signals.inbox:
		code = exitSignalled + signalNumber(sig)
	case <-g.Lost():
		return exitWith(exitLost, "%s is lost", j.thing)
	}
	return j.ended(code, release(g))
}

func writeLocked(cmd *cli.Command, reply lockReply) error {
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		return writeJSON(out, reply)
	}
	text := "holding " + printable(reply.Name)
	if reply.Token > 0 {
		text += fmt.Sprintf(", token %d", reply.Token)
	}
	if isTerminal(out) {
		text += "; Ctrl-C releases it"
	}
	return writeLines(out, text+"\n")
}

// inputEnd returns a channel that is closed when standard input ends, or nil if standard input is
// not a pipe or a socket. Other input does not count: a program in the background has empty input,
// or a terminal that it must not read.
func inputEnd() <-chan struct{} {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	return ended
}
