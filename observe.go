package latchkey

import (
	"log/slog"
	"time"
)

// EventType says what happened to a lock.
type EventType int

// The events of a lock's life.
const (
	// EventAttempt: the server was asked for the lock once. Err is nil if it was
	// granted, ErrNotAcquired if it is held, else what went wrong. Permits that are asked
	// for together are one attempt, under the id of one of them.
	EventAttempt EventType = iota + 1
	// EventAcquired: an outermost acquisition or a re-entry succeeded after Wait.
	EventAcquired
	// EventReleased: this client gave the lock back altogether, after Held. Another
	// client that has joined the hold may keep it.
	EventReleased
	// EventRenewed: the lease was renewed.
	EventRenewed
	// EventLost: the hold ended without a release after Held; Err is the cause.
	EventLost
	// EventUndone: an acquisition whose outcome was unknown turned out to have
	// happened, and was taken back.
	EventUndone
)

// String returns the name of the event in lower case.
func (t EventType) String() string {
	names := [...]string{"", "attempt", "acquired", "released", "renewed", "lost", "undone"}
	if t < 1 || int(t) >= len(names) {
		return "unknown"
	}
	return names[t]
}

// Event is what [Options.Observer] is told, for metrics, traces and logs.
type Event struct {
	Type EventType
	Kind Kind   // of the lock; KindPermit for a permit
	Name string // as the program gave it
	// Owner is the owner for which the lock was asked or held, and for a permit its id
	// ([Permit.ID]).
	Owner Owner
	Wait  time.Duration // EventAcquired: from the call to the hold
	Held  time.Duration // EventReleased, EventLost: since the acquisition
	Err   error         // EventAttempt, EventLost
}

// LogValue returns the event as a group of attributes, without those that do not apply, so
// that package log/slog logs it so.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("type", e.Type.String()), slog.String("kind", string(e.Kind)),
		slog.String("name", e.Name), slog.Any("owner", e.Owner),
	}
	switch e.Type {
	case EventAcquired:
		attrs = append(attrs, slog.Duration("wait", e.Wait))
	case EventReleased, EventLost:
		attrs = append(attrs, slog.Duration("held", e.Held))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("err", e.Err))
	}
	return slog.GroupValue(attrs...)
}
