package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func electCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "elect",
		Usage:     "run a command while leading",
		UsageText: "latchkey elect NAME [--value TEXT] [--once] [--wait 10s] -- CMD [ARGS…]",
		Description: `Campaigns until it leads, then runs the command. When the leadership is lost, the
command is ended and the campaign starts again; with --once, this program exits
with 76 instead. When the command ends by itself, this program resigns and exits
with the code of the command, and the next candidate leads at once.

` + tokenEnv + ` in the command's environment contains the term. Send it along with
each write, and make the receiver refuse smaller terms: a paused leader may not
know that another one leads.

One scheduler, on any number of machines:

  latchkey elect scheduler --value "$(hostname):8080" -- ./scheduler
  curl "http://$(latchkey leader scheduler --value)/status"

` + jobHelp("leadership", "75 when\nit was not elected in time", ", with --once or\nafter a signal to end it"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "value", Usage: "`TEXT` that the leader announces", DefaultText: "the name of this host"},
			&cli.BoolFlag{Name: "once", Usage: "do not campaign again after a loss"},
		}, jobFlags("leadership")...),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return elect(ctx, cmd, args)
		},
	}
}

func elect(ctx context.Context, cmd *cli.Command, args []string) error {
	name, argv, err := nameAndCommand(cmd, args, "")
	if err != nil {
		return err
	}
	j, err := newJob(cmd, argv)
	if err != nil {
		return err
	}
	value := cmd.String("value")
	if !cmd.IsSet("value") {
		value, _ = os.Hostname() // empty if the host has no name
	}
	j.again = !cmd.Bool("once")
	j.thing = fmt.Sprintf("the leadership of %q", name)
	j.waitsFor = "the leadership of " + printable(name)
	j.busy, j.occupants = fmt.Sprintf("%q is led by", name), occupantsOf(name)
	j.open = func(_ context.Context, client *latchkey.Client) (door, error) {
		return electionDoor{client.NewElection(name), value, lockNotes(cmd)}, nil
	}
	j.environment = func(g guard) []string {
		return append(os.Environ(), tokenEnv+"="+strconv.FormatInt(g.(leaderGuard).Term(), 10))
	}
	return j.run(ctx)
}

func leaderCommand() *cli.Command {
	return &cli.Command{
		Name:      "leader",
		Usage:     "show who leads an election, and since when",
		ArgsUsage: "NAME",
		Description: `Read-only. With --watch it prints a line at each change, until a signal ends it.

  latchkey leader scheduler --value

Exit code: 0 when there is a leader, 75 when there is none, 69 when the server
cannot be reached; with --watch 128+n when signal n ended it.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "watch", Usage: "print each change of the leader"},
			&cli.BoolFlag{Name: "value", Usage: "print only the leader's value, for scripts"},
			jsonFlag(),
		},
		Action: atName(leader, "json", "value"),
	}
}

func leader(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	e := client.NewElection(name)
	if cmd.Bool("watch") {
		return watchLeader(ctx, cmd, e)
	}
	found, err := e.Leader(ctx)
	if err != nil {
		return libraryError(err)
	}
	if err := writeLeader(cmd, name, found); err != nil || !found.IsZero() {
		return err
	}
	return silently(exitNotAcquired)
}

// watchLeader continues while the server is unavailable, and reports the error.
func watchLeader(ctx context.Context, cmd *cli.Command, e *latchkey.Election) error {
	for found, err := range e.Observe(ctx) {
		switch {
		case errors.Is(err, latchkey.ErrUnavailable):
			say(cmd.Root().ErrWriter, "%v", plainError{err})
		case err != nil:
			return libraryError(err)
		default:
			if err := writeLeader(cmd, e.Name(), found); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaderReply is what leader --json prints; fields may be added to it, not changed.
type leaderReply struct {
	Name  string         `json:"name"`
	Led   bool           `json:"led"`
	Value string         `json:"value"`
	Term  int64          `json:"term"` // 0 if nobody leads
	Since *time.Time     `json:"since,omitempty"`
	Age   int64          `json:"age_ms"`
	Lease int64          `json:"lease_ms"`
	Owner latchkey.Owner `json:"owner"`
	Label string         `json:"label,omitempty"`
}

func writeLeader(cmd *cli.Command, name string, l latchkey.Leader) error {
	out := cmd.Root().Writer
	switch {
	case cmd.Bool("json"):
		reply := leaderReply{
			Name: name, Led: !l.IsZero(), Value: l.Value, Term: l.Term, Owner: l.Owner, Label: l.Label,
			Age: l.Age.Milliseconds(), Lease: l.Lease.Milliseconds(),
		}
		if !l.IsZero() {
			since := l.Since.UTC()
			reply.Since = &since
		}
		return writeJSON(out, reply)
	case cmd.Bool("value"):
		_, err := fmt.Fprintln(out, l.Value)
		return err
	}
	return writeLines(out, leaderText(name, l, cmd.Bool("watch")))
}

// leaderText is the text for people, in one line with --watch.
func leaderText(name string, l latchkey.Leader, watch bool) string {
	since := fmt.Sprintf("%s, for %s", l.Since.Format(time.RFC3339), timeText(l.Age.Round(time.Second)))
	switch {
	case l.IsZero():
		return fmt.Sprintf("%s has no leader\n", name)
	case watch:
		by := shown(l.Value)
		if l.Label != "" && l.Label != l.Value {
			by += " (" + printable(l.Label) + ")"
		}
		return fmt.Sprintf("%s is led by %s, term %d since %s\n", name, by, l.Term, since)
	}
	return fmt.Sprintf("%s is led by %s\n", name, shown(l.Value)) + row("term", strconv.FormatInt(l.Term, 10)) +
		row("since", since) + row("expires", fmt.Sprintf("in %s unless renewed", timeText(l.Lease.Round(time.Millisecond)))) +
		row("held by", ownerText(l.Label, l.Owner.String()))
}

// shown returns the value, quoted if it is empty or would disturb the screen.
func shown(value string) string {
	if quoted := strconv.Quote(value); quoted != `"`+value+`"` || value == "" {
		return quoted
	}
	return value
}
