package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "check that the server supports and permits what locks need",
		UsageText: "latchkey check [--prefix PREFIX]",
		Description: `Acquires, renews and releases a lock with a unique name, publishes, subscribes, and
checks the eviction policy. Also tries to list objects, for at most a second. That
needs permission for SCAN; without it, only ls and top fail. It opens a connection of
its own, and says nothing about those of programs that run.

Exit code: 0 when everything works, 69 when something is wrong or the server cannot
be reached. For each known problem, a line says what to do.

  latchkey check && ./start
  latchkey check --prefix orders:`,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "prefix", Usage: "`PREFIX` of the names that the server lets this user lock"}},
		Action: check,
	}
}

func check(ctx context.Context, cmd *cli.Command) error {
	if cmd.Args().Present() {
		return usageError("check takes no arguments; see %s --help", cmd.FullName())
	}
	return interruptibly(ctx, func(ctx context.Context) error {
		client, err := connect(ctx, cmd, latchkey.Options{KeyPrefix: cmd.String("prefix")})
		if err != nil {
			return err
		}
		defer closeClient(client)
		out := cmd.Root().Writer
		err = client.Check(ctx)
		if err == nil {
			_, err = fmt.Fprintln(out, "over a new connection: locks, renewal, messages and eviction: ok")
			if failed := tryToList(ctx, client); failed != nil && err == nil {
				_, err = fmt.Fprintf(out, "ls and top: %s\n", listAdvice(plainError{failed}))
			}
			return err
		}
		_, _ = fmt.Fprintf(out, "%s\n", advice(plainError{err}))
		return silently(exitUnavailable)
	})
}

// listPatience limits a walk that finds nothing. A walk that is refused ends with the first reply.
const listPatience = time.Second

// tryToList returns why objects cannot be listed, or nil. A walk that runs out of time was
// permitted.
func tryToList(ctx context.Context, client *latchkey.Client) error {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	for _, err := range client.Objects(ctx, "latchkey:check:*") {
		if err != nil && ctx.Err() == nil {
			return err
		}
		break
	}
	return nil
}

// listAdvice returns the text of an error of listing, and what to do if the user lacks the
// permission.
func listAdvice(err error) string {
	if replied(err, "NOPERM") {
		return err.Error() + "\n  give the user +scan"
	}
	return err.Error()
}

// advice returns the text of an error, and a line with what to do for each known cause.
func advice(err error) string {
	text := err.Error()
	for _, known := range [][2]string{
		{"NOPERM", "give the user the permissions of docs/reference/keys.md, and set --prefix to the prefix that they cover"},
		{"OOM", "the server is out of memory: give it more, or delete unneeded data"},
		{"READONLY", "this is a replica: connect to the master, or through Sentinel"},
		{"MISCONF", "the server cannot save its data: look at its disk"},
	} {
		if replied(err, known[0]) {
			text += "\n  " + known[1]
		}
	}
	if strings.Contains(text, "maxmemory-policy is ") {
		text += "\n  set maxmemory-policy noeviction, or use a separate server for locks"
	}
	return text
}

// replied reports whether the tree of an error has a reply of the server with that code. Its text
// may have the code in the name of a key.
func replied(err error, code string) bool {
	if reply, is := err.(*rueidis.RedisError); is { //nolint:errorlint // it looks at each error in the tree
		first, _, _ := strings.Cut(reply.Error(), " ")
		return first == code
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return replied(e.Unwrap(), code)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(each error) bool { return replied(each, code) })
	}
	return false
}
