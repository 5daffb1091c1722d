package main

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func waitersCommand() *cli.Command {
	return &cli.Command{
		Name:      "waiters",
		Usage:     "list the waiters of a lock, a semaphore whose permits have ids, or a barrier",
		ArgsUsage: "NAME",
		Description: `Lists the owners in the queues of a lock, in order, or the parties at a barrier, at
most 1000. The queue of a fair lock or a fair semaphore contains each waiter. The
queue of another lock or semaphore contains each client of this library once, for
all its goroutines; that of a plain semaphore is only counted, because its entries are
not owners. Clients that wait for a latch, or to read, are not in a queue: they listen
for a message, and the last line counts them. The same holds for Redisson clients that
wait for a lock that is not fair.

Read-only. A lock for which nobody waits is not an error: exit code 0.

  latchkey waiters orders:42`,
		Flags:  []cli.Flag{jsonFlag()},
		Action: atName(waiters),
	}
}

// waitersReply is what waiters --json prints; fields may be added to it, not changed.
type waitersReply struct {
	Name      string        `json:"name"`
	Waiters   []waiterReply `json:"waiters"`
	Queued    int           `json:"queued"` // also those that Waiters cannot list
	Listeners int           `json:"listeners"`
}

type waiterReply struct {
	Owner latchkey.Owner `json:"owner"`
	Label string         `json:"label,omitempty"` // of its client
	Age   int64          `json:"age_ms"`          // -1 if unknown
	Alive int64          `json:"alive_ms"`        // -1 if unknown
}

func waiters(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	found, err := client.Inspect(ctx, name)
	if err != nil {
		return libraryError(err)
	}
	if found.Kind == latchkey.KindRate {
		return exitWith(exitSoftware, "%q is a rate limiter, and the server does not know who waits; "+
			"for the number of reserved requests: latchkey inspect %[1]s", name)
	}
	list, err := waitersOf(ctx, client, found)
	if err != nil {
		return libraryError(err)
	}
	if cmd.Bool("json") {
		return writeJSON(cmd.Root().Writer, waitersJSON(found, list))
	}
	return writeWaiters(cmd.Root().Writer, found, list)
}

// waitersOf returns the waiters in the queues of a lock, or the parties at a barrier.
func waitersOf(ctx context.Context, client *latchkey.Client, o latchkey.Object) ([]latchkey.Waiter, error) {
	switch {
	case o.Kind == latchkey.KindBarrier:
		return partiesAt(ctx, client.NewBarrier(o.Name, 1))
	case o.Kind != latchkey.KindNone && o.Kind != latchkey.KindUnknown && !o.Locked() && o.Queued == 0:
		return nil, nil
	}
	return client.Waiters(ctx, o.Name)
}

func partiesAt(ctx context.Context, b *latchkey.Barrier) ([]latchkey.Waiter, error) {
	state, err := b.State(ctx)
	var all []latchkey.Waiter
	for _, p := range state.Who {
		if p.Running {
			continue
		}
		all = append(all, latchkey.Waiter{Owner: p.Owner, Label: p.Label, Age: -1, Alive: p.Lease})
	}
	return all, err
}

func waitersJSON(found latchkey.Object, list []latchkey.Waiter) waitersReply {
	reply := waitersReply{Name: found.Name, Waiters: []waiterReply{}, Queued: found.Queued, Listeners: found.Listeners}
	for _, w := range list {
		each := waiterReply{Owner: w.Owner, Label: w.Label, Age: w.Age.Milliseconds(), Alive: w.Alive.Milliseconds()}
		if w.Age < 0 {
			each.Age = -1
		}
		if w.Alive == latchkey.NoExpiry {
			each.Alive = -1
		}
		reply.Waiters = append(reply.Waiters, each)
	}
	return reply
}

func writeWaiters(out io.Writer, found latchkey.Object, list []latchkey.Waiter) error {
	text := ""
	for _, w := range list {
		text += waiterText(found.Kind, w) + "\n"
	}
	return writeLines(out, fmt.Sprintf("%s%s: %s\n", text, printable(found.Name), waitingText(found, len(list))))
}

// waitingText says how many wait in queues, and how many clients listen. It omits a number that is
// 0 if the other one is not. The waiters in the queue of a semaphore listen too, and cannot be
// distinguished from other listeners, so there only the queue counts.
func waitingText(o latchkey.Object, n int) string {
	n = max(n, o.Queued)
	queued, listening := queuedText(o, n), fmt.Sprintf("%d listening", o.Listeners)
	switch waiting := n > 0; {
	case waiting && (o.Listeners == 0 || o.Kind == latchkey.KindSemaphore):
		return queued
	case !waiting && o.Listeners > 0 && o.Kind != latchkey.KindBarrier:
		return listening
	}
	return queued + ", " + listening
}

// queuedText says how many wait in the queues of a lock, or at a barrier.
func queuedText(o latchkey.Object, n int) string {
	if o.Kind == latchkey.KindBarrier {
		return fmt.Sprintf("%d of %d at the barrier", n, o.Total)
	}
	return fmt.Sprintf("%d in queues", n)
}

func waiterText(kind latchkey.Kind, w latchkey.Waiter) string {
	text := ownerText(w.Label, w.Owner.String())
	if w.Age >= 0 {
		text += "  for " + shortTime(w.Age)
	}
	if w.Permits > 0 {
		text += fmt.Sprintf("  permits: %d", w.Permits)
	}
	switch {
	case w.Alive != 0:
	case kind == latchkey.KindBarrier:
		text += "  not responding, the barrier will break"
	default:
		text += "  not responding, will be skipped"
	}
	return text
}
