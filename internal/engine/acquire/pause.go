package acquire

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/queue"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/turns"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// This file is what an acquisition does between two attempts.

// What returns the kind and the name of the lock.
func (a *Acquisition) What() (keyspace.Kind, string) { return a.Lock.Spec.Kind, a.Lock.Name() }

// Pause implements [line.Attempter]. It relies on messages, and tries as often as the kind of lock
// requires. A spin lock polls, and does not rely on messages.
func (a *Acquisition) Pause(q *line.Line, round int, left time.Duration) time.Duration {
	c, s := a.Lock.Client, a.Lock.Spec
	a.ReportNoExpiry(left)
	switch {
	case s.Backoff != nil && a.pollIn > 0:
		return a.pollIn
	case s.Backoff != nil:
		return s.Backoff(round)
	}
	a.ReportOwnWait()
	a.reportBehindOwnReader()
	a.ShowWaiting()
	pause := c.PollPause()
	if s.Ceiling != nil {
		pause = min(pause, s.Ceiling(c))
	}
	if a.pollIn > 0 {
		pause = min(pause, a.pollIn)
	}
	if a.awaitsGrant(round) && a.pollIn == 0 && q.ExpectGrant() {
		return line.PauseUntil(left, min(pause, queue.LongestPause))
	}
	return line.PauseUntil(left, a.listen(q, round, pause))
}

// listen makes the line listen to the messages of the lock, for a waiter that awaits no grant. It
// returns for how long the waiter may rely on them, which is pause at most.
func (a *Acquisition) listen(q *line.Line, round int, pause time.Duration) time.Duration {
	c, s := a.Lock.Client, a.Lock.Spec
	if s.Passes {
		q.TakeTurns()
	}
	switch {
	case s.Line != line.Only:
		q.Subscribe(c.Notifier, a.Lock.Names.Channel, line.PresenceChannel(a.Lock.Names.Key))
		if s.Side == keyspace.KindRead && q.MustPoll(round) {
			pause = min(pause, line.PauseOfPoller(c.Clock().Since(a.Since)))
		}
	case s.Passes:
		// Before it is subscribed: a subscription that is relied on does not retire.
		q.RelyFor(pause + pubsub.SubscriptionLinger)
		fallthrough
	default:
		q.Subscribe(c.Notifier, a.Lock.Names.Channel)
	}
	if s.Recipe { // other libraries publish nothing when they release it
		pause = min(pause, retry.Jitter(turns.RecipeSlow))
	}
	switch {
	case s.Recipe && a.ByStranger:
		pause = min(pause, q.RecipeHolds(a.holder))
	case a.ByStranger && s.Passes:
		q.StrangerHolds(!a.stranger)
		a.stranger = true
	}
	return pause
}

// ShowWaiting makes the waiter visible to others, and finds out who holds the lock, for the error
// of the wait.
func (a *Acquisition) ShowWaiting() {
	c := a.Lock.Client
	c.Record.Use(c.Clock().Mono, c.Config.StaleWaiterTimeout)
	if a.holder != "" {
		c.Labels.Fetch(a.holder)
	}
}

// ReportNoExpiry logs a lock without an expiry, which a refusal shows by its remaining time.
func (a *Acquisition) ReportNoExpiry(left time.Duration) {
	if left < 0 && a.Lock.Spec.IsLock() {
		a.Lock.Client.Reporter.Log(report.NoticeNoExpiry, a.Lock.Names.Key)
	}
}
