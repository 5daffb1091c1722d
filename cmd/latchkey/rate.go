package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func rateCommand(args []string) *cli.Command {
	return &cli.Command{
		Name:      "rate",
		Usage:     "run a command when its turn comes, at a rate for all machines",
		UsageText: "latchkey rate NAME N/PERIOD [flags] -- CMD [ARGS…]",
		Description: `Waits until the rate limiter NAME lets a request through, and runs the command.
Commands start in the order in which they asked, on all machines that use the same
server. After a quiet time, N start at once, or as many as --burst says, and then N in
each period: so at most N+burst (2N by default) in any period. PERIOD is s, m, h, d, or
a time such as 30s or 7d.

  latchkey rate api 10/s --burst 1 -- curl https://api.example.com/items
  latchkey rate mails 500/h --wait 5m -- ./send-mail

--set sets the rate and the burst for all programs at once, instead of their own, until
the limiter has not been used for 30 days, and runs nothing; "own" instead of a rate
ends that.

  latchkey rate api 2/s --set

The command inherits standard input, output and error, and gets the signals that this
program gets. A signal that arrives before the turn ends the wait, and the turn is
given back.

Exit code: the command's own, or 128+n when signal n ended it; 75 when its turn does
not come in time; 127 when the command was not found, 126 when it cannot be executed;
70 when NAME is another kind of object; 69 when the server cannot be reached or does
not answer; 64 for a mistake on the command line.`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "burst", Usage: "let `B` commands start at once", DefaultText: "N", Validator: between(1, 1<<31-1)},
			waitFlag("give up with exit code 75 if the turn does not come within `TIME`", 0),
			&cli.BoolFlag{Name: "no-wait", Aliases: []string{"n"}, Usage: "try once, like --wait 0s"},
			&cli.BoolFlag{Name: "set", Usage: "set the rate and the burst for all programs, and run nothing"},
		},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return rateAction(ctx, cmd, args)
		},
	}
}

func rateAction(ctx context.Context, cmd *cli.Command, args []string) error {
	before, argv := aroundDashes(cmd, args)
	set := cmd.Bool("set")
	switch {
	case len(before) != 2:
		return usageError("rate needs a NAME and a rate such as 10/s before --, not %d arguments; see latchkey rate --help", len(before))
	case set != (len(argv) == 0):
		return usageError("rate needs a command, or --set: latchkey rate NAME 10/s -- CMD [ARGS…]")
	}
	name := before[0]
	if set && before[1] == "own" {
		return setRate(ctx, cmd, name, latchkey.Rate{})
	}
	rate, err := rateOf(before[1], cmd.Int("burst"))
	switch {
	case err != nil:
		return err
	case set:
		return setRate(ctx, cmd, name, rate)
	}
	if err = executable(argv[0]); err != nil {
		return err
	}
	return waitAndRun(ctx, cmd, argv, name, rate)
}

// setRate sets the rate for all programs, or removes it if it is zero. The rate of this limiter is
// not used: it sends no requests.
func setRate(ctx context.Context, cmd *cli.Command, name string, rate latchkey.Rate) error {
	return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
		if err := client.NewRateLimiter(name, latchkey.Rate{N: 1, Per: time.Second}).SetRate(ctx, rate); err != nil {
			return libraryError(err)
		}
		what := rate.String() + " for all programs"
		if rate == (latchkey.Rate{}) {
			what = "own rate of each program"
		}
		return writeLines(cmd.Root().Writer, printable(name)+": "+what+"\n")
	})
}

// waitAndRun runs a command when its turn comes.
func waitAndRun(ctx context.Context, cmd *cli.Command, argv []string, name string, rate latchkey.Rate) error {
	j, err := newJob(cmd, argv)
	if err != nil {
		return err
	}
	d := &rateDoor{limit: j.wait, refused: make(chan error, 1)}
	j.observer = d.observe
	j.thing, j.waitsFor = fmt.Sprintf("the turn at %q", name), "a turn at "+printable(name)
	j.occupants = func(context.Context, *latchkey.Client) (occupants, error) { return occupants{}, nil }
	j.refused = func(string) error { return exitWith(exitNotAcquired, "%w", plainError{d.refusal}) }
	j.open = func(_ context.Context, client *latchkey.Client) (door, error) {
		d.limiter = client.NewRateLimiter(name, rate)
		return d, nil
	}
	j.environment = func(guard) []string { return os.Environ() }
	return j.run(ctx)
}

// rateOf reads a rate such as 10/s or 100/30s.
func rateOf(text string, burst int) (latchkey.Rate, error) {
	number, period, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	per, known := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": day}[period]
	if !known && err == nil {
		per, err = timeOrDays(period)
	}
	if err != nil {
		return latchkey.Rate{}, usageError("%q is not a rate such as 10/s, 600/m or 100/30s; see latchkey rate --help", text)
	}
	return latchkey.Rate{N: n, Per: per, Burst: burst}, nil
}

// rateDoor is a rate limiter.
type rateDoor struct {
	limiter *latchkey.RateLimiter
	limit   time.Duration // of the wait, or 0
	refused chan error    // has the first error that the client reports
	refusal error
}

func (d *rateDoor) observe(e latchkey.Event) {
	if e.Type == latchkey.EventGaveUp {
		select {
		case d.refused <- e.Err:
		default:
		}
	}
}

func (d *rateDoor) enter(ctx context.Context, _ ...latchkey.WaitOption) (guard, error) {
	if d.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.limit)
		defer cancel()
	}
	d.refusal = d.limiter.Wait(ctx)
	return turnGuard{}, d.refusal
}

func (d *rateDoor) tryEnter(ctx context.Context) (guard, error) {
	allowed, err := d.limiter.Allow(ctx)
	if err == nil && !allowed {
		err = noTurnError{d.limiter.Name(), errors.New("too many requests")}
		select {
		case why := <-d.refused: // says when the turn is
			err = noTurnError{d.limiter.Name(), why}
		case <-time.After(time.Second):
		}
	}
	d.refusal = err
	return turnGuard{}, err
}

// noTurnError is the ErrNotAcquired of a command that does not wait.
type noTurnError struct {
	name string
	why  error
}

func (e noTurnError) Error() string { return fmt.Sprintf("%q: %v", e.name, e.why) }
func (noTurnError) Unwrap() error   { return latchkey.ErrNotAcquired }

// turnGuard is a turn: it has been used when the command starts, so it cannot be lost.
type turnGuard struct{}

func (turnGuard) Context(parent context.Context) context.Context { return parent }
func (turnGuard) Lost() <-chan struct{}                          { return nil }
func (turnGuard) Err() error                                     { return nil }
func (turnGuard) Release(context.Context) error                  { return nil }

// limiterText says what a rate limiter lets through.
func limiterText(o latchkey.Object) string {
	return fmt.Sprintf("rate: %s, %s", o.Rate, leftText(o))
}

// leftText says how many requests may go at once, and how many are reserved.
func leftText(o latchkey.Object) string {
	return fmt.Sprintf("%d reserved, %d of %d available", max(-o.Available, 0), max(o.Available, 0), o.Total)
}

// limiterRows returns the rows of a rate limiter, where one object is shown.
func limiterRows(o latchkey.Object) string {
	return row("rate", o.Rate.String()) + row("now", leftText(o))
}
