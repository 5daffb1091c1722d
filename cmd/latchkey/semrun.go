package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const permitEnv = "LATCHKEY_PERMIT"

func semRunCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run a command while holding one of N permits",
		UsageText: "latchkey sem run NAME [--permits N] [flags] -- CMD [ARGS…]",
		Description: `Waits for a permit of the semaphore, runs the command, and releases the permit when
the command has ended, however it ended. So at most N such commands run at once,
on all machines that use the same server. The permit is renewed as long as the
command runs. If this program is killed, the permit becomes free when the lease
ends. ` + permitEnv + ` in the command's environment contains its id.

If the semaphore is not set, --permits sets it. If it already has a different number
than N, that number applies, and a line on standard error says so; --set changes it
to N. If more permits are held than that, no holder loses one, but none is granted
until enough are released.

With --fair, waiting commands get permits in order of arrival, across all machines.
Use it everywhere or nowhere: a command without it takes any free permit, ahead of
waiting commands.

  latchkey sem run imports --permits 3 --wait 10m -- ./import

` + jobHelp("permit", "75 when\nit was not acquired in time", ""),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "same as the argument `NAME`"},
			&cli.IntFlag{Name: "permits", Usage: "let at most `N` such commands run at once", DefaultText: "the number that is set", Validator: atLeast(1)},
			&cli.BoolFlag{Name: "set", Usage: "change the semaphore to N permits"},
			&cli.BoolFlag{Name: "fair", Usage: "first come, first served"},
		}, jobFlags("permit")...),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return semRun(ctx, cmd, args)
		},
	}
}

func semRun(ctx context.Context, cmd *cli.Command, args []string) error {
	name, argv, err := nameAndCommand(cmd, args, "name")
	if err != nil {
		return err
	}
	total, set := cmd.Int("permits"), cmd.Bool("set")
	if set && total == 0 {
		return usageError("--set needs --permits N; see latchkey sem run --help")
	}
	j, err := newJob(cmd, argv)
	if err != nil {
		return err
	}
	j.thing = fmt.Sprintf("the permit of %q", name)
	j.waitsFor = "a permit of " + printable(name)
	j.busy, j.occupants = fmt.Sprintf("all permits of %q are held by", name), permitOccupants(name)
	j.open = func(ctx context.Context, client *latchkey.Client) (door, error) {
		if plain, err := plainSemaphore(ctx, client, name); plain != nil || err != nil {
			return nil, cmp.Or(err, errPlain(name))
		}
		var s permitPool = client.NewPermitSemaphore(name)
		if cmd.Bool("fair") {
			s = client.NewFairSemaphore(name)
		}
		return permitDoor{s, permitNotes(cmd)}, j.provide(ctx, s, name, total, set)
	}
	j.environment = func(g guard) []string {
		return append(os.Environ(), permitEnv+"="+g.(*latchkey.Permit).ID())
	}
	return j.run(ctx)
}

// permitPool is a semaphore whose permits have leases, fair or not.
type permitPool interface {
	Acquire(ctx context.Context, options ...latchkey.PermitOption) (*latchkey.Permit, error)
	TryAcquire(ctx context.Context, options ...latchkey.TryPermitOption) (*latchkey.Permit, error)
	TrySetPermits(ctx context.Context, n int, options ...latchkey.SetOption) (bool, error)
	SetPermits(ctx context.Context, n int) error
	Inspect(ctx context.Context) (latchkey.Object, error)
}

// provide makes sure that the semaphore is set: to total permits, unless that is 0, or to the
// number that somebody else has set.
func (j job) provide(ctx context.Context, s permitPool, name string, total int, set bool) error {
	if set {
		return s.SetPermits(ctx, total)
	}
	if total > 0 {
		if done, err := s.TrySetPermits(ctx, total); done || err != nil {
			return err
		}
	}
	state, err := s.Inspect(ctx)
	switch {
	case err == nil && total == 0 && state.Kind == latchkey.KindNone:
		return exitWith(exitSoftware, "%q is not set; --permits N sets it", name)
	case err == nil && total > 0 && state.Total != total:
		j.say("%q has %s, not %d: continuing; --set changes the number", name, permitCount(state.Total), total)
	}
	return err
}

func permitCount(n int) string {
	if n == 1 {
		return "1 permit"
	}
	return fmt.Sprintf("%d permits", n)
}

// errPlain says that sem run cannot use a semaphore of NewSemaphore.
func errPlain(name string) error {
	return exitWith(exitSoftware, "%q is a plain semaphore (NewSemaphore); sem run needs one whose permits have leases "+
		"(NewPermitSemaphore): use another name", name)
}
