package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// Flags and arguments that several commands have, and the messages for wrong ones.

// leastLease is the shortest lease of a command: a shorter lease would end before it could be
// renewed.
const leastLease = 10 * time.Millisecond

// The bounds of times that the library accepts, and its usual lease.
const (
	leastTime  = time.Millisecond
	mostTime   = 10 * 365 * 24 * time.Hour
	usualLease = 30 * time.Second
)

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON"}
}

// waitFlag limits a wait. Its value must be at least least.
func waitFlag(usage string, least time.Duration) *cli.DurationFlag {
	return &cli.DurationFlag{Name: "wait", Usage: usage, DefaultText: "wait forever", Validator: atLeast(least)}
}

func leaseFlag(usage string, usual time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "lease", Usage: usage, Value: usual, Validator: between(leastLease, mostTime)}
}

// everyFlag sets how often a command queries the server.
func everyFlag(usual, least time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "every", Usage: "poll every `TIME`", Value: usual, Validator: atLeast(least)}
}

func atLeast[T cmp.Ordered](least T) func(T) error {
	return func(value T) error {
		if value < least {
			return fmt.Errorf("must be at least %s", valueText(least))
		}
		return nil
	}
}

func between[T cmp.Ordered](least, most T) func(T) error {
	return func(value T) error {
		if value < least || value > most {
			return fmt.Errorf("must be %s to %s", valueText(least), valueText(most))
		}
		return nil
	}
}

// valueText returns the value of a flag for messages.
func valueText(value any) string {
	if d, is := value.(time.Duration); is {
		return timeText(d)
	}
	return fmt.Sprint(value)
}

// timeOrDays reads a time such as 10m, 24h or 7d. Too many days are more than any time may be.
func timeOrDays(text string) (time.Duration, error) {
	number, days := strings.CutSuffix(text, "d")
	if !days {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(number, 10, 32)
	return time.Duration(min(n, 2*uint64(mostTime/day))) * day, err
}

const day = 24 * time.Hour

const year = 365 * 24 * time.Hour

// timeText returns a duration for messages, as the library does: 5m rather than 5m0s, and "10 years
// (87600h)".
func timeText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if years := d / year; years > 1 && d%year == 0 {
		return fmt.Sprintf("%d years (%s)", years, text)
	}
	return text
}

// exclude returns an error if more than one of these flags is set.
func exclude(cmd *cli.Command, flags ...string) error {
	first := ""
	for _, flag := range flags {
		switch {
		case !cmd.IsSet(flag):
		case first != "":
			return usageError("--%s and --%s cannot be used together; see %s --help", first, flag, cmd.FullName())
		default:
			first = flag
		}
	}
	return nil
}

// oneName returns the only argument of a command.
func oneName(cmd *cli.Command) (string, error) {
	if cmd.Args().Len() != 1 {
		return "", usageError("%s takes exactly one NAME, not %d; see %s --help",
			cmd.Name, cmd.Args().Len(), cmd.FullName())
	}
	return cmd.Args().First(), nil
}

// aimed is the function of a command, for the object that its argument names.
type aimed func(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error

// atName returns the action of a command whose only argument is a NAME. The exclusive flags exclude
// each other. A signal ends the action.
func atName(do aimed, exclusive ...string) cli.ActionFunc {
	return func(ctx context.Context, cmd *cli.Command) error {
		name, err := oneName(cmd)
		if err == nil {
			err = exclude(cmd, exclusive...)
		}
		if err != nil {
			return err
		}
		return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
			return do(ctx, cmd, client, name)
		})
	}
}

// atServer calls do with a client. A signal ends it.
func atServer(ctx context.Context, cmd *cli.Command, do func(context.Context, *latchkey.Client) error) error {
	return interruptibly(ctx, func(ctx context.Context) error {
		return query(ctx, cmd, func(client *latchkey.Client) error { return do(ctx, client) })
	})
}

var (
	invalidValue = regexp.MustCompile(`^invalid value (".*") for flag -+(\S+): (.*)$`)
	missingFlag  = regexp.MustCompile(`^Required flag "(.*)" not set$`)
)

const unknownFlag = "flag provided but not defined: -"

// onUsageError says in one line what is wrong with a flag; the cli library would add a page of
// help. If an unknown word is in the place of a command, it reports that word instead: the flag may
// belong to the command that was meant.
func onUsageError(_ context.Context, cmd *cli.Command, err error, _ bool) error {
	text := err.Error()
	if len(cmd.Commands) > 0 && cmd.Args().Present() {
		return unknownCommand(cmd, cmd.Args().First())
	}
	if flag, unknown := strings.CutPrefix(text, unknownFlag); unknown {
		return unknownFlagError(cmd, strings.TrimLeft(flag, "-"))
	}
	if found := invalidValue.FindStringSubmatch(text); found != nil {
		reason := found[3]
		switch {
		case strings.HasPrefix(reason, "time: "):
			reason = "must be a time such as 500ms, 10s or 5m"
		case strings.HasPrefix(reason, "strconv."):
			reason = "must be a number"
		}
		text = fmt.Sprintf("--%s %s: %s", found[2], strings.Trim(found[1], `"`), reason)
	}
	if found := missingFlag.FindStringSubmatch(text); found != nil {
		text = "--" + found[1] + " is missing"
	}
	return usageError("%s; see %s --help", text, cmd.FullName())
}

// unknownFlagError names the unknown flag, and a flag that may have been meant.
func unknownFlagError(cmd *cli.Command, flag string) error {
	dashes := "--"
	if len(flag) == 1 {
		dashes = "-"
	}
	known := []string{"help"}
	for _, flag := range append(cmd.VisibleFlags(), cmd.VisiblePersistentFlags()...) {
		known = append(known, flag.Names()...)
	}
	if meant := closest(flag, known); meant != "" {
		return usageError("unknown flag %s%s; did you mean --%s? See %s --help", dashes, flag, meant, cmd.FullName())
	}
	return usageError("unknown flag %s%s; see %s --help", dashes, flag, cmd.FullName())
}

// unknownCommand names the unknown command, and a command that may have been meant.
func unknownCommand(group *cli.Command, word string) error {
	var known []string
	for _, command := range group.VisibleCommands() {
		known = append(known, command.Names()...)
	}
	if meant := closest(word, known); meant != "" {
		return usageError("unknown command %q; did you mean %s? See %s --help", word, meant, group.FullName())
	}
	return usageError("unknown command %q; see %s --help", word, group.FullName())
}

var (
	operation = regexp.MustCompile(`^[a-z]+(?: [a-z]+)* "`)
	scriptRun = regexp.MustCompile(` script: (?:[0-9a-f]{40}, )?on @\w+:\d+\.?` +
		`|Error running script \(call to f_[0-9a-f]{40}\): @user_script:\d+: (?:@user_script: \d+: -?)?`)
)

// plainError is an error of the library for users of the command line: its text does not name
// methods, nor scripts inside the server.
type plainError struct{ error }

func (e plainError) Unwrap() error { return e.error }

func (e plainError) Error() string {
	text := strings.ReplaceAll(e.error.Error(), "latchkey: ", "")
	if !errors.Is(e.error, latchkey.ErrUnavailable) {
		text = operation.ReplaceAllString(text, `"`)
	}
	text = strings.ReplaceAll(text, "invalid argument: ", "")
	return scriptRun.ReplaceAllString(text, "")
}
