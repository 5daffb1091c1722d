package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show who holds a lock, or the state of any other object",
		ArgsUsage: "NAME",
		Description: `Read-only. For a semaphore, a latch or a barrier it prints what the inspect command of
that object prints. A free name is not an error: exit code 0, or 75 with --exit-code.
A Once that is done and a rate limiter that is idle are there, with exit code 0.

  latchkey inspect orders:42
  latchkey inspect --exit-code orders:42 >/dev/null || echo free
  latchkey inspect --json orders:42 | jq .ttl_ms`,
		Flags:  []cli.Flag{jsonFlag(), exitCodeFlag("there is nothing under the name")},
		Action: atName(inspect),
	}
}

// exitCodeFlag makes a command tell its answer by its exit code too, as git diff does.
func exitCodeFlag(when string) cli.Flag {
	return &cli.BoolFlag{Name: "exit-code", Usage: "exit with 75 if " + when}
}

// codeIf returns the end of a command that found nothing, or something.
func codeIf(cmd *cli.Command, nothing bool) error {
	if nothing && cmd.Bool("exit-code") {
		return silently(exitNotAcquired)
	}
	return nil
}

func inspect(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
	found, err := client.Inspect(ctx, name)
	if err != nil {
		return libraryError(err)
	}
	if cmd.Bool("json") {
		err = inspectJSON(cmd, found)
	} else {
		err = inspectText(ctx, cmd, client, found)
	}
	return cmp.Or(err, codeIf(cmd, found.Kind == latchkey.KindNone))
}

func inspectText(ctx context.Context, cmd *cli.Command, client *latchkey.Client, found latchkey.Object) error {
	switch found.Kind {
	case latchkey.KindSemaphore:
		return showSemaphore(ctx, cmd, client, found.Name)
	case latchkey.KindLatch:
		return showLatch(ctx, cmd, client.NewCountDownLatch(found.Name))
	case latchkey.KindBarrier:
		return barrierInspect(ctx, cmd, client, found.Name)
	case latchkey.KindNumber:
		found.What += fmt.Sprintf(", value %d", found.Count)
	}
	return writeInspection(cmd.Root().Writer, found)
}

// inspectJSON prints an object that is not a lock as ls does.
func inspectJSON(cmd *cli.Command, found latchkey.Object) error {
	out := cmd.Root().Writer
	switch found.Kind {
	case latchkey.KindSemaphore, latchkey.KindLatch, latchkey.KindBarrier, latchkey.KindRate, latchkey.KindNumber:
		return writeJSON(out, objectJSON(found))
	}
	return writeJSON(out, inspectionJSON(found))
}

// inspectionReply is what inspect --json prints; fields may be added to it, not
// changed.
type inspectionReply struct {
	Name    string        `json:"name"`
	Key     string        `json:"key"`
	Kind    string        `json:"kind"`
	What    string        `json:"what,omitempty"` // description of a key that is not a lock
	Locked  bool          `json:"locked"`
	TTL     int64         `json:"ttl_ms"` // 0 when free, -1 without expiry
	Holders []holderReply `json:"holders"`
	Token   int64         `json:"token"`
}

type holderReply struct {
	Owner latchkey.Owner `json:"owner"`
	Label string         `json:"label,omitempty"` // of its client
	Note  string         `json:"note,omitempty"`
	Count int            `json:"count"`
	Write bool           `json:"write,omitempty"` // of a read/write lock
	Kept  bool           `json:"kept,omitempty"`  // released, but taken until it expires
}

func inspectionJSON(found latchkey.Object) inspectionReply {
	reply := inspectionReply{
		Name:    found.Name,
		Key:     found.Key,
		Kind:    string(found.Kind),
		Locked:  found.Locked(),
		TTL:     found.TTL.Milliseconds(),
		Holders: []holderReply{},
		Token:   found.Token,
	}
	if !found.Locked() {
		reply.What = found.What
	}
	if found.TTL == latchkey.NoExpiry {
		reply.TTL = -1
	}
	for _, holder := range found.Holders {
		reply.Holders = append(reply.Holders, holderReply(holder))
	}
	return reply
}

func writeJSON(out io.Writer, reply any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(reply)
}

func writeInspection(out io.Writer, found latchkey.Object) error {
	text := state(found)
	if found.Kind == latchkey.KindRate {
		text += limiterRows(found)
	}
	if found.Kind != latchkey.KindNone {
		text += row("kind", string(found.Kind)) + row("expires", expiry(found))
	}
	if found.What != "" && !found.Locked() && found.Kind != latchkey.KindOnce && found.Kind != latchkey.KindRate {
		text += row("what", found.What)
	}
	if found.Key != found.Name {
		text += row("key", found.Key)
	}
	for _, holder := range found.Holders {
		text += row("held by", holderText(found, holder))
	}
	if found.Token > 0 {
		text += row("token", fmt.Sprintf("%d, the last one issued", found.Token))
	}
	return writeLines(out, text)
}

func state(found latchkey.Object) string {
	switch {
	case found.Locked():
		return fmt.Sprintf("%s is locked\n", found.Name)
	case isDone(found):
		return fmt.Sprintf("%s is done\n", found.Name)
	case found.Kind == latchkey.KindOnce:
		return fmt.Sprintf("%s is running\n", found.Name)
	case found.Kind == latchkey.KindRate:
		return fmt.Sprintf("%s is a rate limiter\n", found.Name)
	case found.Kind != latchkey.KindNone:
		return fmt.Sprintf("%s is not a lock\n", found.Name)
	default:
		return fmt.Sprintf("%s is free\n", found.Name)
	}
}

// isDone reports whether it is a Once that has succeeded.
func isDone(o latchkey.Object) bool { return o.Kind == latchkey.KindOnce && len(o.Holders) == 0 }

func row(title, value string) string {
	return fmt.Sprintf("  %-8s %s\n", title, value)
}

func expiry(found latchkey.Object) string {
	switch {
	case found.TTL == latchkey.NoExpiry:
		return "never"
	case !found.Locked() && len(found.Holders) == 0, len(found.Holders) == 1 && found.Holders[0].Kept:
		return "in " + timeText(found.TTL.Round(time.Millisecond))
	}
	return fmt.Sprintf("in %s unless renewed", timeText(found.TTL.Round(time.Millisecond)))
}

func holderText(found latchkey.Object, holder latchkey.Holder) string {
	text := holder.Owner.String()
	if found.Kind == latchkey.KindMutex {
		text = mutexHolder(text)
	}
	text = ownerText(holder.Label, text)
	if holder.Note != "" {
		text += fmt.Sprintf(", %q", holder.Note)
	}
	if found.Kind == latchkey.KindRWLock {
		text += map[bool]string{true: ", writing", false: ", reading"}[holder.Write]
	}
	if holder.Kept {
		text += ", released, kept taken by its AtLeast"
	}
	if holder.Count > 1 {
		text += fmt.Sprintf(", %d times", holder.Count)
	}
	return text
}

// ownerText returns an owner, with the label of its client if that is known. It makes both
// printable, because anybody with write access to the server may have written them. Text that is
// already quoted stays as it is.
func ownerText(label, owner string) string {
	if label == "" {
		return printable(owner)
	}
	return printable(label) + " (" + printable(owner) + ")"
}

// mutexHolder describes the token of a mutex. A token that this library has not made
// may be anything.
func mutexHolder(token string) string {
	if _, err := latchkey.ParseOwner(token); err != nil {
		return fmt.Sprintf("%.80q; probably a mutex of another library, or application data", token)
	}
	return token
}
