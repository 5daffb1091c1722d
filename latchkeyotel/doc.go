// Package latchkeyotel turns the events of latchkey clients into OpenTelemetry metrics and spans.
//
//	observer, err := latchkeyotel.New()
//	if err != nil {
//		return err
//	}
//	client, err := latchkey.Connect(ctx, url, latchkey.Options{Observer: observer.Observe})
//
// One [Observer] serves any number of clients. It delays no lock: a client calls its observer after
// the event, from a separate goroutine.
//
// # Metrics
//
// Each metric has the attribute latchkey.kind, the kind of the object (see [latchkey.Kind]).
// Metrics of something that ends also have latchkey.outcome. Times are in seconds.
//
//	latchkey.wait.duration      histogram        how long calls took to succeed or to give up
//	latchkey.hold.duration      histogram        how long this process held locks and permits that have ids
//	latchkey.holds              up-down counter  locks and permits that this process holds now
//	latchkey.losses             counter          holds that ended without a release
//	latchkey.attempts           counter          attempts to acquire a lock or permits on the server
//	latchkey.renewals           counter          renewals of leases
//	latchkey.undone             counter          acquisitions that were undone because no caller received them
//	latchkey.permits.acquired   counter          permits of semaphores without ids
//	latchkey.permits.released   counter          permits of semaphores without ids
//	latchkey.latch.countdowns   counter          calls that counted a latch down
//
// [Observer.WatchClient] adds a value that the client knows:
//
//	latchkey.calls.waiting      up-down counter  calls of this process that wait now
//
// [Observer.Watch] adds values that the server reports for chosen objects:
//
//	latchkey.waiters            gauge            waiters in the queue of an object
//	latchkey.permits.available  gauge            permits that can be acquired
//	latchkey.permits.limit      gauge            all permits
//	latchkey.latch.count        gauge            the remaining count
//
// # Spans
//
// latchkey.wait covers a call from its beginning until it succeeds or gives up. latchkey.hold
// covers a hold from its acquisition to its release or loss; failed renewals are events of that
// span. Both are children of the span in the context of the call. A span is created when it ends: a
// hold that has not ended when the process exits leaves no span.
//
// # Names
//
// Names of locks often contain ids of orders or users. They are attributes only with [WithNames],
// and on the gauges of [Observer.Watch]. Without WithNames, all other metrics and all spans contain
// neither a name nor the text of an error, which would contain the name.
package latchkeyotel
