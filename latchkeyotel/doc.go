// Package latchkeyotel turns the events of latchkey clients into OpenTelemetry metrics and spans.
//
//	observer, err := latchkeyotel.New()
//	if err != nil {
//		return err
//	}
//	client, err := latchkey.Connect(ctx, url, latchkey.Options{Observer: observer.Observe})
//
// One [Observer] serves any number of clients. No lock waits for it: a client calls its observer after the
// event, from a goroutine of its own.
//
// # Metrics
//
// Each has the attribute latchkey.kind, the kind of the object (see [latchkey.Kind]), and those that say how
// something ended have latchkey.outcome. Times are in seconds.
//
//	latchkey.wait.duration      histogram        how long calls took to get what they asked for, or to give up
//	latchkey.hold.duration      histogram        how long this process held locks and permits that have ids
//	latchkey.holds              up-down counter  how many it holds now
//	latchkey.losses             counter          holds that ended without a release
//	latchkey.attempts           counter          attempts to acquire a lock or permits on the server
//	latchkey.renewals           counter          renewals of leases
//	latchkey.undone             counter          acquisitions that nobody was told of, and that were taken back
//	latchkey.permits.acquired   counter          permits of semaphores without ids
//	latchkey.permits.released   counter          the same
//	latchkey.latch.countdowns   counter          calls that counted a latch down
//
// [Observer.Watch] adds what the server says of chosen objects:
//
//	latchkey.waiters            gauge            waiters in the queue of a fair lock or semaphore
//	latchkey.permits.available  gauge            permits that can be acquired
//	latchkey.permits.limit      gauge            all permits
//	latchkey.latch.count        gauge            what is left to count
//
// # Spans
//
// latchkey.wait is a call from its beginning until it had what it asked for, or gave up. latchkey.hold is a hold
// from its acquisition to its release or loss; renewals that failed are its events. Both are children of the span
// in the context of the call. They are made when they end: one that has not ended when the process does is never seen.
//
// # Names
//
// Names of locks are often made of ids of orders or users. They are attributes only with [WithNames]; without it
// neither metrics nor spans contain a name, nor the text of an error, which has the name in it.
package latchkeyotel
