package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/latchkey-go/latchkey"
)

func semInspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show the number of permits of a semaphore, and who holds them",
		ArgsUsage: "NAME",
		Description: `Read-only. A semaphore that is not set is not an error: exit code 0, or 75 with
--exit-code.

  latchkey sem inspect imports`,
		Flags: []cli.Flag{jsonFlag(), exitCodeFlag("the semaphore is not set")},
		Action: atName(func(ctx context.Context, cmd *cli.Command, client *latchkey.Client, name string) error {
			return showSemaphore(ctx, cmd, client, name)
		}),
	}
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
		err = writeJSON(out, reply)
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
	return cmp.Or(err, codeIf(cmd, !reply.Set))
}

func lookAtSemaphore(ctx context.Context, client *latchkey.Client, name string, holders bool) (semaphoreReply, error) {
	reply := semaphoreReply{Name: name}
	plain, err := plainSemaphore(ctx, client, name)
	if err != nil {
		return reply, err
	}
	if plain != nil {
		state, err := plain.Inspect(ctx)
		return reply.with(state), err
	}
	s := client.NewPermitSemaphore(name)
	state, err := s.Inspect(ctx)
	reply = reply.with(state)
	if err != nil || !reply.Set || !holders {
		return reply, err
	}
	held, err := s.Holders(ctx)
	for _, p := range held {
		each := permitReply{p.ID, p.Label, p.Note, p.Lease.Milliseconds()}
		if p.Lease == latchkey.NoExpiry {
			each.Lease = -1
		}
		reply.Holders = append(reply.Holders, each)
	}
	if errors.Is(err, latchkey.ErrNotSet) { // it was deleted after Inspect
		return semaphoreReply{Name: name}, nil
	}
	return reply, err
}

// with returns the reply with the numbers of a semaphore, which may not be set.
func (r semaphoreReply) with(state latchkey.Object) semaphoreReply {
	r.Set = state.Kind == latchkey.KindSemaphore
	r.Permits, r.Acquired, r.Available = state.Total, state.HolderCount, state.Available
	if r.TTL = state.TTL.Milliseconds(); state.TTL == latchkey.NoExpiry {
		r.TTL = -1
	}
	return r
}
