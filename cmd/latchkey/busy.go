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

// occupants are those who have what a job asked for: who they are, and what is left of the first one's lease, 0 if
// that is not known.
type occupants struct {
	names []string
	left  time.Duration
	kept  bool // the only one has released it
}

// occupantsOf asks who has a lock, or leads an election.
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

// permitOccupants asks who has the permits of a semaphore.
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

// occupantsPatience is for how long a job that was not let in asks who is inside.
const occupantsPatience = time.Second

// busyText is why the job was not let in, and by whom, as it is now. At a terminal a long name is cut so that the
// line fits.
func (j job) busyText(ctx context.Context, client *latchkey.Client) string {
	ctx, cancel := context.WithTimeout(ctx, occupantsPatience)
	defer cancel()
	first, more := "somebody else", ""
	o, err := j.occupants(ctx, client)
	if err == nil && len(o.names) > 0 {
		first = printable(o.names[0])
		if n := len(o.names) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		if o.kept {
			more = ", who released it; it is kept until it expires"
		}
		if o.left > 0 {
			more += ", " + shortTTL(o.left) + " left"
		}
	}
	if j.wait > 0 {
		more += fmt.Sprintf(", waited %v", j.wait)
	}
	const least = 12
	if width := terminalWidth(j.cmd.Root().ErrWriter); width > 0 {
		room := width - uniseg.StringWidth("latchkey: "+j.busy+" "+more)
		first = strings.TrimRight(fit(first, min(max(least, room), uniseg.StringWidth(first))), " ")
	}
	return j.busy + " " + first + more
}
