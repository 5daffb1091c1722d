package latchkey

import (
	"context"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// EventType says what happened to a lock or another object.
type EventType report.EventType

// The events of a lock's life, and those of other objects.
const (
	// EventAttempt: the client sent one attempt to acquire the lock. Err is nil if it was granted,
	// otherwise the reason for the refusal. Permits that are requested together are one attempt,
	// under the id of one of them.
	EventAttempt EventType = EventType(report.Attempt)
	// EventAcquired: an outermost acquisition or a re-entry succeeded after Wait. For a semaphore,
	// Count permits were acquired.
	EventAcquired EventType = EventType(report.Acquired)
	// EventReleased: this client released the lock completely, after Held. Another client that
	// joined the hold may still have it. For a semaphore, Count permits were released.
	EventReleased EventType = EventType(report.Released)
	// EventRenewed: the lease was renewed.
	EventRenewed EventType = EventType(report.Renewed)
	// EventLost: the hold ended without a release after Held; Err is the cause.
	EventLost EventType = EventType(report.Lost)
	// EventUndone: an acquisition whose outcome was unknown turned out to have happened, and was
	// undone; or the client removed what a lost hold had left on the server.
	EventUndone EventType = EventType(report.Undone)
	// EventGaveUp: a call ended after Wait without success; Err is what it returned. It is also
	// sent for a try, for a rate limiter, for the Await of a latch or a barrier, and for a
	// MultiLock in addition to its members. It is not sent for a call that failed with ErrInvalid
	// or ErrClosed before it began. The call of a context that had already ended gives up at once.
	EventGaveUp EventType = EventType(report.GaveUp)
	// EventRenewalFailed: a renewal was not confirmed, for the reason Err, as in EventAttempt. The
	// lease continues, and the renewal is repeated. If the lease ends first, EventLost follows.
	EventRenewalFailed EventType = EventType(report.RenewalFailed)
	// EventCountedDown: this client counted a latch down. Count is what remains.
	EventCountedDown EventType = EventType(report.CountedDown)
	// EventOpened: an Await found its latch open, or its barrier complete, or a Do found its Once
	// done, or a rate limiter let Count requests go or reserved them, after Wait.
	EventOpened EventType = EventType(report.Opened)
)

// String returns the name of the event as logs and metrics use it, such as "gave_up".
func (t EventType) String() string { return report.EventType(t).String() }

// Event is passed to [Options.Observer], for metrics, traces and logs.
type Event struct {
	Type EventType
	Time time.Time // when it happened, by the clock of this machine; the observer may be called later
	Kind Kind      // of the object; KindPermit or KindFairPermit for a permit
	Name string    // as the program gave it
	// Owner is the owner that requested or held the lock or the permit. Semaphores, latches and
	// barriers have no owner, and neither does a call that gave up before it sent a request.
	Owner  Owner
	Permit string // the id of a permit ([Permit.ID]), or ""
	Count  int    // permits of a semaphore, or what remains of a latch; else 0
	// Reentry is true for an EventAcquired that re-entered a hold. A re-entry has no EventReleased
	// or EventLost of its own: these belong to the outermost acquisition.
	Reentry bool
	Wait    time.Duration // EventAcquired, EventGaveUp, EventOpened: since the call
	Held    time.Duration // EventReleased, EventLost: since the acquisition
	Err     error         // EventAttempt, EventLost, EventGaveUp, EventRenewalFailed
	// Context has the values of the context of the call that acquired the lock, or that the event
	// is about, so that a span can be the child of another. It never ends, and is never nil. An
	// event that belongs to no call has none of these values: EventUndone, and any event of a hold
	// that was passed on inside the client and whose call has not returned yet.
	Context context.Context
}

// LogValue returns the event as a group of attributes for package log/slog, without those that do
// not apply and without the time, which every log line has.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("type", e.Type.String()), slog.String("kind", string(e.Kind)),
		slog.String("name", e.Name),
	}
	if !e.Owner.IsZero() {
		attrs = append(attrs, slog.String("owner", e.Owner.String()))
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
		attrs = append(attrs, slog.Any("err", fault.OneLine(e.Err)))
	}
	return slog.GroupValue(attrs...)
}

// eventOf returns an event as observers see it.
func eventOf(e report.Event) Event {
	return Event{
		Type: EventType(e.Type), Time: e.Time, Kind: Kind(e.Kind), Name: e.Name, Owner: Owner(e.Owner), Permit: e.Permit,
		Count: e.Count, Reentry: e.Reentry, Wait: e.Wait, Held: e.Held, Err: e.Err, Context: e.Context,
	}
}

// observerOf returns what reports events to the observer, or nil if there is none.
func observerOf(o Options) func(report.Event) {
	if o.Observer == nil {
		return nil
	}
	return func(e report.Event) { o.Observer(eventOf(e)) }
}
