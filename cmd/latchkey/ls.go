package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

// columnsHelp explains the columns that ls and top share.
const columnsHelp = `HOLDERS  of a lock; acquired/total permits; remaining count of a latch; waiting/total
         parties; 1 while a Once runs; used/burst of a rate limiter; ? for number?
WAITERS  owners in queues, or clients that listen, or did some seconds ago; - for a
         rate limiter
TTL      time until the key expires, unless it is renewed
HELD BY  the first holder of a lock, and how many more`

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list held locks, semaphores, latches and other objects",
		ArgsUsage: "[PREFIX]",
		Description: `Lists all objects whose names begin with PREFIX, sorted by name. It scans all keys of
the server in small batches, including keys that are not objects.

` + columnsHelp + `
kinds    lock: re-entrant, fenced, spin or fair; mutex?: possibly application
         data; number?: a semaphore or latch of Redisson, or a counter

If nothing is found, that is not an error: exit code 0.

  latchkey ls orders:
  latchkey ls --match 'orders:*:eu' --json`,
		Flags: []cli.Flag{
			prefixFlag(),
			matchFlag(),
			jsonFlag(),
		},
		Action: ls,
	}
}

func ls(ctx context.Context, cmd *cli.Command) error {
	pattern, err := patternOf(cmd)
	if err != nil {
		return err
	}
	return atServer(ctx, cmd, func(ctx context.Context, client *latchkey.Client) error {
		found, err := allObjects(ctx, client, pattern)
		if err != nil {
			return libraryError(err)
		}
		if cmd.Bool("json") {
			return writeObjects(cmd.Root().Writer, found)
		}
		return writeTable(cmd.Root().Writer, found, terminalWidth(cmd.Root().Writer))
	})
}

func prefixFlag() cli.Flag {
	return &cli.StringFlag{Name: "prefix", Usage: "same as the argument `PREFIX`"}
}

func matchFlag() cli.Flag {
	return &cli.StringFlag{Name: "match", Usage: "only names that match `PATTERN`, which may contain *, ? and [a-z]"}
}

// patternQuoter makes a text a pattern that matches nothing else.
var patternQuoter = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// patternOf returns the pattern of the names, from a flag or the argument.
func patternOf(cmd *cli.Command) (string, error) {
	match, prefix, args := cmd.String("match"), cmd.String("prefix"), cmd.Args().Slice()
	if prefix != "" {
		args = append(args, prefix)
	}
	switch {
	case len(args) > 1, len(args) == 1 && match != "":
		return "", usageError("%s takes one PREFIX or --match; see %s --help", cmd.Name, cmd.FullName())
	case match != "":
		return match, nil
	case len(args) == 0:
		return "*", nil
	}
	return patternQuoter.Replace(args[0]) + "*", nil
}

// allObjects returns all objects that match, each once, sorted by name.
func allObjects(ctx context.Context, client *latchkey.Client, pattern string) ([]latchkey.Object, error) {
	byName := map[string]latchkey.Object{}
	for o, err := range client.Objects(ctx, pattern) {
		if err != nil {
			return nil, err
		}
		byName[o.Name] = o
	}
	all := make([]latchkey.Object, 0, len(byName))
	for _, o := range byName {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b latchkey.Object) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// objectReply is what --json prints for one object; fields may be added to it, not changed.
type objectReply struct {
	inspectionReply

	HolderCount int    `json:"holder_count"`
	Waiters     int    `json:"waiters"`
	Queued      int    `json:"queued"`
	Listeners   int    `json:"listeners"`
	Available   *int   `json:"available,omitempty"` // of a semaphore or a rate limiter
	Permits     *int   `json:"permits,omitempty"`
	Left        *int64 `json:"left,omitempty"`    // of a latch, and parties that a barrier waits for
	Parties     *int   `json:"parties,omitempty"` // of a barrier
	Value       *int64 `json:"value,omitempty"`   // of a number
	Rate        string `json:"rate,omitempty"`    // of a rate limiter
	Burst       *int   `json:"burst,omitempty"`
}

func objectJSON(o latchkey.Object) objectReply {
	reply := objectReply{inspectionReply: inspectionJSON(o), HolderCount: o.HolderCount,
		Waiters: o.Waiters(), Queued: o.Queued, Listeners: o.Listeners}
	switch o.Kind {
	case latchkey.KindSemaphore:
		reply.Available, reply.Permits = &o.Available, &o.Total
	case latchkey.KindLatch:
		reply.Left = &o.Count
	case latchkey.KindBarrier:
		reply.Left, reply.Parties = &o.Count, &o.Total
	case latchkey.KindRate:
		reply.Rate, reply.Available, reply.Burst = o.Rate.String(), &o.Available, &o.Total
	case latchkey.KindNumber:
		reply.Value = &o.Count
	}
	return reply
}

func writeObjects(out io.Writer, found []latchkey.Object) error {
	replies := make([]objectReply, len(found))
	for i, o := range found {
		replies[i] = objectJSON(o)
	}
	return writeJSON(out, replies)
}
