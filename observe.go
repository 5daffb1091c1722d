package latchkey

import (
	"context"
	"log/slog"
	"time"
)

// EventType says what happened to a lock or another object.
type EventType int

// The events of a lock's life, and of those of other objects that have them.
const (
	// EventAttempt: the server was asked for the lock once. Err is nil if it was
	// granted, ErrNotAcquired if it is held, ErrUnavailable if the server is in trouble, else
	// why it refuses. Permits that are asked for together are one attempt, under the id of one
	// of them.
	EventAttempt EventType = iota + 1
	// EventAcquired: an outermost acquisition or a re-entry succeeded after Wait. For a
	// semaphore, Count permits were acquired.
	EventAcquired
	// EventReleased: this client released the lock completely, after Held. Another
	// client that has joined the hold may keep it. To a semaphore, Count permits were released.
	EventReleased
	// EventRenewed: the lease was renewed.
	EventRenewed
	// EventLost: the hold ended without a release after Held; Err is the cause.
	EventLost
	// EventUndone: an acquisition whose outcome was unknown turned out to have
	// happened, and was taken back.
	EventUndone
	// EventGaveUp: a call ended after Wait without what it asked for; Err is what it returned.
	// It is also sent for a TryLock, for the Await of a latch or a barrier, and for a MultiLock or
	// RedLock in addition to its members. It is not sent for a call that failed with ErrInvalid or ErrClosed before it began.
	EventGaveUp
	// EventRenewalFailed: a renewal was not confirmed, for the reason Err, as in EventAttempt. The lease goes on,
	// and the renewal is repeated. If the lease ends meanwhile, EventLost follows.
	EventRenewalFailed
	// EventCountedDown: this client counted a latch down. Count is what is left.
	EventCountedDown
	// EventOpened: an Await found its latch open, or its barrier complete, after Wait.
	EventOpened
)

var eventNames = [...]string{
	"", "attempt", "acquired", "released", "renewed", "lost", "undone", "gave up", "renewal failed", "counted down", "opened",
}

// String returns the name of the event in lower case.
func (t EventType) String() string {
	if t < 1 || int(t) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[t]
}

// Event is passed to [Options.Observer], for metrics, traces and logs.
type Event struct {
	Type EventType
	Time time.Time // when it happened, by the clock of this machine; the observer may be told later
	Kind Kind      // of the object; KindPermit or KindFairPermit for a permit
	Name string    // as the program gave it
	// Owner is the owner for which the lock was asked or held. That of a permit cannot enter anything;
	// it begins with the id of this client as all its owners do. Semaphores, latches and barriers have none, nor has a call
	// that gave up before it asked the server.
	Owner  Owner
	Permit string // the id of a permit ([Permit.ID]), or ""
	Count  int    // of permits of a semaphore, or what is left of a latch; else 0
	// Reentry says of an EventAcquired that a hold was entered again. No EventReleased and no EventLost
	// of its own follows: those are told of the outermost acquisition.
	Reentry bool
	Wait    time.Duration // EventAcquired, EventGaveUp, EventOpened: since the call
	Held    time.Duration // EventReleased, EventLost: since the acquisition
	Err     error         // EventAttempt, EventLost, EventGaveUp, EventRenewalFailed
	// Context has the values of the context of the call that acquired the lock, or that the event
	// is about, so that a span can be the child of another. It never ends, and is never nil. An
	// event that belongs to no call has none of these values: EventUndone, and what happens to a
	// hold between its being passed to a call inside the client and the return of that call.
	Context context.Context
}

// LogValue returns the event as a group of attributes, without those that do not apply, for
// package log/slog. The time is not among them: a line of the log has one.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("type", e.Type.String()), slog.String("kind", string(e.Kind)),
		slog.String("name", e.Name), slog.Any("owner", e.Owner),
	}
	if e.Permit != "" {
		attrs = append(attrs, slog.String("permit", e.Permit))
	}
	if e.Count != 0 || e.Type == EventCountedDown {
		attrs = append(attrs, slog.Int("count", e.Count))
	}
	if e.Reentry {
		attrs = append(attrs, slog.Bool("reentry", true))
	}
	switch e.Type {
	case EventAcquired, EventGaveUp, EventOpened:
		attrs = append(attrs, slog.Duration("wait", e.Wait))
	case EventReleased, EventLost:
		attrs = append(attrs, slog.Duration("held", e.Held))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("err", e.Err))
	}
	return slog.GroupValue(attrs...)
}
