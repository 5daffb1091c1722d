// Package semaphore has the semaphores: permits that are only counted, and permits with ids and
// leases, which goroutines or clients get in the order of a line or of a queue on the server.
package semaphore

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Semaphore is a counting semaphore, whose permits have no owners. On the wire it is Redisson's
// RSemaphore.
type Semaphore struct{ Count }

// New returns the semaphore with that name.
func New(c *core.Parts, name string) Semaphore {
	o := object.New(c, keyspace.KindSemaphore, name, Channel)
	total := keyspace.TotalKey(keyspace.Tag(o.Names.Key))
	return Semaphore{Count{Object: o, SecondKey: total, numeral: "semaphore", script: semaphoreChange}}
}

// Drain acquires all available permits, and returns their number, which is negative if permits were
// missing.
func (s *Semaphore) Drain(ctx context.Context) (int, error) {
	a, err := s.Perform(ctx, s.Client.Closing, "drain", func(o *undo.Operation) script.Call {
		return script.NewCall(script.SemDrain, []string{s.Names.Key, o.Record, s.KindKey()}, o.Number)
	}, func(o *undo.Operation) script.Call { return s.UndoCall(o, "") }, false)
	if err != nil {
		return 0, err
	}
	return script.Int(a)
}

// releaseCall returns the call that releases permits. isShort is '1' if strangers have had more of
// them than this client.
func (c *Count) releaseCall(o *undo.Operation, how string, n int, isShort string) script.Call {
	return c.served(script.SemRelease, o, strconv.Itoa(n), line.PresenceChannel(c.Names.Key), how, isShort)
}

// semaphoreChange returns the call that changes the number of permits of a Semaphore.
func semaphoreChange(c *Count, o *undo.Operation, how permitChange, n int, ttl string) script.Call {
	return c.served(script.SemSet, o, strconv.Itoa(n), ttl, string(how))
}

// UndoCall gives back what an acquisition may have taken, and takes its entry out of the queue.
func (c *Count) UndoCall(o *undo.Operation, entry string) script.Call {
	return c.served(script.SemUndo, o, entry, line.PresenceChannel(c.Names.Key))
}

// served returns the call of a script that serves the queue of a Semaphore. o is nil for an entry
// without an operation.
func (c *Count) served(cmd transport.Command, o *undo.Operation, what string, more ...string) script.Call {
	record, number := c.Names.Key, "" // a key of the same slot, which the user may use
	if o != nil {
		record, number = o.Record, o.Number
	}
	keys := append([]string{c.Names.Key, c.SecondKey, record, c.KindKey()}, c.Names.SemQueueKeys()...)
	kept := script.MillisText(max(c.Client.Config.StaleWaiterTimeout/5, time.Millisecond))
	args := []string{number, what, kept, c.Client.Publish, c.Names.Channel}
	return script.NewCall(cmd, keys, append(c.Client.Inbox.ChannelArgs(args, c.Names.Key), more...)...)
}
