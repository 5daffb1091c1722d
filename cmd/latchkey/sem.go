package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const permitEnv = "LATCHKEY_PERMIT"

func semCommand(args []string) *cli.Command {
	return group("sem", "limit how many programs work at once, across all machines", `A semaphore has permits; each working program holds one.

  latchkey sem run --name imports --permits 3 -- ./import
  latchkey sem inspect imports`,
		semRunCommand(args),
		semInspectCommand(),
		semSetCommand(),
		semDeleteCommand(),
	)
}

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

func semInspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show the number of permits of a semaphore, and who holds them",
		ArgsUsage: "NAME",
		Description: `Read-only. A semaphore that is not set is not an error: exit code 0.

  latchkey sem inspect imports`,
		Flags: []cli.Flag{jsonFlag()},
		Action: atName(func(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
			return showSemaphore(ctx, cmd, client, name)
		}),
	}
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

// semaphoreReply is what sem inspect --json and sem set --json print; fields may
// be added to it, not changed.
type semaphoreReply struct {
	Name      string `json:"name"`
	Set       bool   `json:"set"`
	Permits   int    `json:"permits"`
	Acquired  int    `json:"acquired"`
	Available int    `json:"available"` // negative if more are acquired than there are
	TTL       int64  `json:"ttl_ms"`    // 0 when not set, -1 without expiry

	Holders []permitReply `json:"holders,omitempty"`
}

// permitReply is a permit that is held.
type permitReply struct {
	ID    string `json:"id"`
	Label string `json:"label,omitempty"` // of the client that holds it
	Note  string `json:"note,omitempty"`
	Lease int64  `json:"lease_ms"` // -1 without expiry
}

func (p permitReply) text() string {
	text := ownerText(p.Label, p.ID)
	if p.Note != "" {
		text += fmt.Sprintf(", %q", p.Note)
	}
	if p.Lease < 0 {
		return text + ", never expires"
	}
	return text + fmt.Sprintf(", expires in %s unless renewed", timeText(time.Duration(p.Lease)*time.Millisecond))
}

func showSemaphore(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	reply, err := lookAtSemaphore(ctx, client, name, cmd.Name == "inspect")
	if err != nil {
		return libraryError(err)
	}
	out := cmd.Root().Writer
	switch {
	case cmd.Bool("json"):
		return writeJSON(out, reply)
	case !reply.Set:
		_, err = fmt.Fprintf(out, "%s is not set\n", name)
	default:
		text := fmt.Sprintf("%s has permits: %d, acquired: %d, available: %d\n",
			name, reply.Permits, reply.Acquired, reply.Available)
		for _, p := range reply.Holders {
			text += row("held by", p.text())
		}
		err = writeLines(out, text)
	}
	return err
}

func lookAtSemaphore(ctx context.Context, client *latchkey.Client, name string, holders bool) (semaphoreReply, error) {
	reply := semaphoreReply{Name: name}
	plain, err := plainSemaphore(ctx, client, name)
	if err != nil {
		return reply, err
	}
	if plain != nil {
		stats, err := plain.Stats(ctx)
		return reply.with(latchkey.PermitStats{
			Available: stats.Available, Acquired: stats.Total - stats.Available, Total: stats.Total, TTL: stats.TTL,
		}, err)
	}
	s := client.NewPermitSemaphore(name)
	stats, err := s.Stats(ctx)
	reply, err = reply.with(stats, err)
	if err != nil || !reply.Set {
		return reply, err
	}
	if !holders {
		return reply, nil
	}
	held, err := s.Holders(ctx)
	for _, p := range held {
		each := permitReply{p.ID, p.Label, p.Note, p.Lease.Milliseconds()}
		if p.Lease == latchkey.NoExpiry {
			each.Lease = -1
		}
		reply.Holders = append(reply.Holders, each)
	}
	if errors.Is(err, latchkey.ErrNotSet) { // it was deleted after Stats
		return semaphoreReply{Name: name}, nil
	}
	return reply, err
}

// with returns the reply with the numbers of a semaphore. A semaphore that nobody has set is not an error.
func (r semaphoreReply) with(stats latchkey.PermitStats, err error) (semaphoreReply, error) {
	switch {
	case errors.Is(err, latchkey.ErrNotSet):
		return r, nil
	case err != nil:
		return r, err
	}
	r.Set, r.Permits, r.Acquired, r.Available = true, stats.Total, stats.Acquired, stats.Available
	if r.TTL = stats.TTL.Milliseconds(); stats.TTL == latchkey.NoExpiry {
		r.TTL = -1
	}
	return r, nil
}

// plainSemaphore returns the semaphore with that name if it is one of NewSemaphore, whose permits have no leases, and
// nil otherwise. Such a semaphore stores a total next to its number, and no ids. A semaphore of Redisson stores neither
// and is not recognized.
func plainSemaphore(ctx context.Context, client *latchkey.Client, name string) (*latchkey.Semaphore, error) {
	s := client.NewSemaphore(name)
	stats, err := s.Stats(ctx)
	switch {
	case errors.Is(err, latchkey.ErrNotSet):
		return nil, nil //nolint:nilnil // there is none
	case err != nil || !stats.TotalKnown:
		return nil, err
	}
	held, err := client.NewPermitSemaphore(name).Stats(ctx)
	if err != nil || held.Acquired > 0 { // with ids, the total is a leftover of an earlier semaphore
		return nil, err
	}
	return s, nil
}

// errPlain says that sem run cannot use a semaphore of NewSemaphore.
func errPlain(name string) error {
	return exitWith(exitSoftware, "%q is a plain semaphore (NewSemaphore); sem run needs one whose permits have leases "+
		"(NewPermitSemaphore): use another name", name)
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
