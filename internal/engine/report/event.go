package report

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// EventType says what happened to a lock or another object.
type EventType int

// The events. The public package says what each of them means.
const (
	Attempt EventType = iota + 1
	Acquired
	Released
	Renewed
	Lost
	Undone
	GaveUp
	RenewalFailed
	CountedDown
	Opened
)

var eventNames = [...]string{
	"", "attempt", "acquired", "released", "renewed", "lost", "undone", "gave_up", "renewal_failed",
	"counted_down", "opened",
}

// String returns the name of the event as logs and metrics use it, such as "gave_up".
func (t EventType) String() string {
	if t < 1 || int(t) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[t]
}

// Event is what the observer is told, field by field as in the public package.
type Event struct {
	Type    EventType
	Time    time.Time
	Kind    keyspace.Kind
	Name    string
	Owner   identity.Owner
	Permit  string
	Count   int
	Reentry bool
	Wait    time.Duration
	Held    time.Duration
	Err     error
	Context context.Context
}
