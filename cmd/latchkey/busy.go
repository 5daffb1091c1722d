package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/latchkey-go/latchkey"
)

// occupants are the holders of the lock, leadership or permits that a job tried to acquire.
type occupants struct {
	names []string
	left  time.Duration // remaining lease of the first holder, 0 if unknown
	kept  bool          // the only holder has released it
}

// occupantsOf queries who holds a lock, or leads an election.
func occupantsOf(name string) func(context.Context, *latchkey.Client) (occupants, error) {
	return func(ctx context.Context, client *latchkey.Client) (occupants, error) {
		found, err := client.Inspect(ctx, name)
		o := occupants{left: found.TTL}
		for _, h := range found.Holders {
			o.names = append(o.names, cmp.Or(h.Label, h.Owner.String()))
			o.kept = h.Kept && len(found.Holders) == 1
		}
		return o, err
	}
}

// permitOccupants queries who holds the permits of a semaphore.
func permitOccupants(name string) func(context.Context, *latchkey.Client) (occupants, error) {
	return func(ctx context.Context, client *latchkey.Client) (o occupants, err error) {
		holders, err := client.NewPermitSemaphore(name).Holders(ctx)
		for _, h := range holders {
			o.names = append(o.names, cmp.Or(h.Label, h.ID))
		}
		if len(holders) > 0 {
			o.left = holders[0].Lease
		}
		return o, err
	}
}

// occupantsPatience limits the query for the holders after a failed acquisition.
const occupantsPatience = time.Second

// texts returns the name of the first occupant, and what else there is to say of them. Without
// occupants it returns "".
func (o occupants) texts() (first, more string) {
	if len(o.names) == 0 {
		return "", ""
	}
	if n := len(o.names) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	if o.kept {
		more = ", released, kept taken by its AtLeast"
	}
	return printable(o.names[0]), more
}

// waitingText says for what the job waits, and who holds it.
func (j job) waitingText(client *latchkey.Client) func(context.Context) string {
	return func(ctx context.Context) string {
		text := "waiting for " + j.waitsFor
		o, err := j.occupants(ctx, client)
		if first, more := o.texts(); err == nil && first != "" {
			text += ", held by " + first + more
		}
		return text
	}
}

// busyText says why the job did not acquire its lock or permit, and who holds it now. On a terminal
// it cuts a long name so that the line fits.
func (j job) busyText(ctx context.Context, client *latchkey.Client) string {
	ctx, cancel := context.WithTimeout(ctx, occupantsPatience)
	defer cancel()
	first, more := "somebody else", ""
	o, err := j.occupants(ctx, client)
	if err == nil && len(o.names) > 0 {
		first, more = o.texts()
		if o.left > 0 {
			more += ", " + shortTTL(o.left) + " left"
		}
	}
	if j.wait > 0 {
		more += fmt.Sprintf(", waited %s", timeText(j.wait))
	}
	const least = 12
	if width := terminalWidth(j.cmd.Root().ErrWriter); width > 0 {
		room := width - uniseg.StringWidth("latchkey: "+j.busy+" "+more)
		first = strings.TrimRight(fit(first, min(max(least, room), uniseg.StringWidth(first))), " ")
	}
	return j.busy + " " + first + more
}
