package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

const (
	watchEvery  = 500 * time.Millisecond
	watchOftest = 50 * time.Millisecond
)

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:      "watch",
		Usage:     "print a line whenever the holders or waiters of an object change",
		ArgsUsage: "NAME",
		Description: `Polls the object and prints its state and then each change: of its holders, their
counts, its waiters, permits or counts. For a lock with more than 64 holders, it
prints only their number. A change that is reversed before the next poll is not seen.
No message reports all changes, so it costs one command per poll. While the server does not
answer, it reports the error and keeps polling.

A signal ends it: exit code 128+n. If the name has application data, the exit code is 70.

  latchkey watch orders:42
  latchkey watch --json --every 100ms orders:42 >>orders.log`,
		Flags: []cli.Flag{
			everyFlag(watchEvery, watchOftest),
			&cli.BoolFlag{Name: "json", Usage: "print each change as a line of JSON"},
		},
		Action: atName(watch),
	}
}

func watch(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	w := watcher{out: cmd.Root().Writer, errs: cmd.Root().ErrWriter, json: cmd.Bool("json")}
	if found, err := client.Inspect(ctx, name); err == nil && found.Kind == latchkey.KindUnknown {
		return exitWith(exitSoftware, "%q is %s, not a lock", name, found.What)
	}
	return w.run(ctx, client, name, cmd.Duration("every"))
}

// watcher prints the changes of an object.
type watcher struct {
	out, errs io.Writer
	json      bool
	last      string // the text that was printed last, without the time
	failed    bool
}

func (w *watcher) run(ctx context.Context, client *latchkey.Client, name string, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		found, err := client.Inspect(ctx, name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			w.failed = false
			if err := w.show(found); err != nil {
				return err
			}
		case exitCodeOf(err) == exitUsage:
			return libraryError(err)
		case !w.failed:
			w.failed = true
			say(w.errs, "%v (still trying)", plainError{err})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// show prints the object if it has changed.
func (w *watcher) show(o latchkey.Object) error {
	text := changeText(o)
	if text == w.last {
		return nil
	}
	w.last = text
	now := time.Now()
	if w.json {
		return json.NewEncoder(w.out).Encode(struct {
			Time time.Time `json:"time"`
			objectReply
		}{now, objectJSON(o)})
	}
	return writeLines(w.out, now.Format("15:04:05.000")+"  "+text+"\n")
}

// changeText describes an object, without the values that change all the time.
func changeText(o latchkey.Object) string {
	waiting := fmt.Sprintf("waiters: %d", o.Waiters())
	switch o.Kind {
	case latchkey.KindNone:
		return "free, " + waiting
	case latchkey.KindUnknown:
		return o.What + ", not a lock"
	case latchkey.KindSemaphore:
		return fmt.Sprintf("permits: %d, acquired: %d, available: %d, %s", o.Total, o.HolderCount, o.Available, waiting)
	case latchkey.KindLatch:
		return fmt.Sprintf("remaining count: %d, %s", o.Count, waiting)
	case latchkey.KindBarrier:
		return fmt.Sprintf("parties: %d, arrived: %d, %s", o.Total, o.Queued, waiting)
	case latchkey.KindRate:
		return limiterText(o)
	case latchkey.KindNumber:
		return fmt.Sprintf("number: %d, %s", o.Count, waiting)
	}
	if isDone(o) {
		return "done, " + waiting
	}
	if sampled(o) {
		return fmt.Sprintf("held by %d owners; %s", o.HolderCount, waiting)
	}
	var holders []string
	for _, holder := range o.Holders {
		holders = append(holders, holderText(o, holder))
	}
	slices.Sort(holders)
	return fmt.Sprintf("held by %s; %s", strings.Join(holders, "; "), waiting)
}
