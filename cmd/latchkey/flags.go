package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// Flags and arguments that several commands have, and what is said of those that are wrong.

// leastLease is the shortest lease that a command may have: a shorter one is over before it can be renewed.
const leastLease = 10 * time.Millisecond

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "write the answer as JSON"}
}

// waitFlag limits a wait, from a shortest time on.
func waitFlag(usage string, least time.Duration) *cli.DurationFlag {
	return &cli.DurationFlag{Name: "wait", Usage: usage, DefaultText: "wait forever", Validator: atLeast(least)}
}

func leaseFlag(usage string, usual time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "lease", Usage: usage, Value: usual, Validator: between(leastLease, latchkey.MaxLease)}
}

// everyFlag is how often a command that goes on looks.
func everyFlag(usual, least time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "every", Usage: "look again after `TIME`", Value: usual, Validator: atLeast(least)}
}

func atLeast[T cmp.Ordered](least T) func(T) error {
	return func(value T) error {
		if value < least {
			return fmt.Errorf("want at least %v", least)
		}
		return nil
	}
}

func between[T cmp.Ordered](least, most T) func(T) error {
	return func(value T) error {
		if value < least || value > most {
			return fmt.Errorf("want %v to %v", least, most)
		}
		return nil
	}
}

// exclude reports flags that were given together though only one of them makes sense.
func exclude(cmd *cli.Command, flags ...string) error {
	first := ""
	for _, flag := range flags {
		switch {
		case !cmd.IsSet(flag):
		case first != "":
			return usageError("--%s and --%s exclude each other; see %s --help", first, flag, cmd.FullName())
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

// aimed is what a command does with the object that its argument names.
type aimed func(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error

// atName is the action of a command that has a NAME as its only argument, and flags that exclude each other. A
// signal ends it.
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

// atServer does something with a client, until a signal says otherwise.
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

// onUsageError says in a line what is wrong with a flag. The library would add a page of help. Where a
// command is expected, an unknown word before the flag is the mistake to tell: the flag may belong to what was meant.
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
			reason = "want a time such as 500ms, 10s or 5m"
		case strings.HasPrefix(reason, "strconv."):
			reason = "want a number"
		}
		text = fmt.Sprintf("--%s %s: %s", found[2], strings.Trim(found[1], `"`), reason)
	}
	if found := missingFlag.FindStringSubmatch(text); found != nil {
		text = "--" + found[1] + " is missing"
	}
	return usageError("%s; see %s --help", text, cmd.FullName())
}

// unknownFlagError names the mistake, and what may have been meant.
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

// unknownCommand names the mistake, and what may have been meant.
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
	operation = regexp.MustCompile(`^[a-z]+(?: [a-z]+)*:? "`)
	scriptRun = regexp.MustCompile(` script: [0-9a-f]{40}, on @\w+:\d+\.?`)
)

// plainError is an error of the library in the words of the command line: without the names of methods, and of
// what runs inside the server.
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
