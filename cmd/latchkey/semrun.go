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
		UsageText: "latchkey sem run --name POOL --permits N [flags] -- CMD [ARGS…]",
		Description: `Waits for a permit of the semaphore, runs the command, and releases the permit when
the command has ended, however it ended. So at most N such commands run at once,
on all machines that use the same server. The permit is renewed as long as the
command runs. If this program is killed, the permit becomes free when the lease
ends. ` + permitEnv + ` in the command's environment contains its id.

The first command sets the semaphore to N permits. If the semaphore already has a
different number, that number applies, and a line on standard error says so; --set
changes it to N. If more permits are held than that, no holder loses one, but none is
granted until enough are released.

With --fair, waiting commands get permits in order of arrival, across all machines.
Use it everywhere or nowhere: a command without it takes any free permit, ahead of
waiting commands.

  latchkey sem run --name imports --permits 3 --wait 10m -- ./import

` + jobHelp("permit", "75 when\nit was not acquired in time", ""),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "`POOL` of permits: the name of the semaphore"},
			&cli.IntFlag{Name: "permits", Usage: "let at most `N` such commands run at once", HideDefault: true},
			&cli.BoolFlag{Name: "set", Usage: "change the semaphore to N permits"},
			&cli.BoolFlag{Name: "fair", Usage: "first come, first served"},
		}, jobFlags("permit")...),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return semRun(ctx, cmd, args)
		},
	}
}

func semRun(ctx context.Context, cmd *cli.Command, args []string) error {
	name, total, set := cmd.String("name"), cmd.Int("permits"), cmd.Bool("set")
	if name == "" || total < 1 {
		return usageError("sem run needs --name POOL and --permits N, at least 1; see latchkey sem run --help")
	}
	j, err := jobFrom(cmd, cmd.Args().Slice(), args, fmt.Sprintf("sem run --name %s --permits %d", name, total))
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
		return permitDoor{s, notes(cmd)}, j.provide(ctx, s, name, total, set)
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
	Stats(ctx context.Context) (latchkey.PermitStats, error)
}

// provide makes sure that the semaphore is set: to total permits, or to the number
// that somebody else has set.
func (j job) provide(ctx context.Context, s permitPool, name string, total int, set bool) error {
	if set {
		return s.SetPermits(ctx, total)
	}
	done, err := s.TrySetPermits(ctx, total)
	if done || err != nil {
		return err
	}
	stats, err := s.Stats(ctx)
	if err == nil && stats.Total != total {
		j.say("%q has %s, not %d: continuing; --set changes the number", name, permitCount(stats.Total), total)
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
