package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// This file is what an acquisition does between two attempts.

// What returns the kind and the name of the lock.
func (a *acquisition) What() (keyspace.Kind, string) { return a.lock.spec.Kind, a.lock.Name() }

// Pause implements [line.Attempter]. It relies on messages, and tries as often as the kind of lock requires. A spin lock
// polls, and does not rely on messages.
func (a *acquisition) Pause(q *line.Line, round int, left time.Duration) time.Duration {
	c, s := a.lock.Client, a.lock.spec
	a.reportNoExpiry(left)
	switch {
	case s.backoff != nil && a.pollIn > 0:
		return a.pollIn
	case s.backoff != nil:
		return s.backoff(round)
	}
	a.reportOwnWait()
	a.reportBehindOwnReader()
	a.showWaiting()
	pause := c.PollPause()
	if s.ceiling != nil {
		pause = min(pause, s.ceiling(c))
	}
	if a.pollIn > 0 {
		pause = min(pause, a.pollIn)
	}
	if a.awaitsGrant(round) && a.pollIn == 0 && q.ExpectGrant() {
		return line.PauseUntil(left, min(pause, ownership.LongestEntryPause))
	}
	if s.Passes {
		q.TakeTurns()
	}
	switch {
	case s.Line != line.Only:
		q.Subscribe(c.Notifier, a.lock.Names.Channel, line.PresenceChannel(a.lock.Names.Key))
		if s.Side == keyspace.KindRead && q.MustPoll(round) {
			pause = min(pause, line.PauseOfPoller(c.Clock().Since(a.since)))
		}
	case s.Passes:
		q.RelyFor(pause + pubsub.SubscriptionLinger) // before it is subscribed: a subscription that is relied on does not retire
		fallthrough
	default:
		q.Subscribe(c.Notifier, a.lock.Names.Channel)
	}
	if s.Recipe { // other libraries publish nothing when they release it
		pause = min(pause, transport.Jitter(line.RecipeSlow))
	}
	switch {
	case s.Recipe && a.byStranger:
		pause = min(pause, q.RecipeHolds(a.holder))
	case a.byStranger && s.Passes:
		q.StrangerHolds(!a.stranger)
		a.stranger = true
	}
	return line.PauseUntil(left, pause)
}

// showWaiting makes the waiter visible to others, and finds out who holds the lock, for the error
// of the wait.
func (a *acquisition) showWaiting() {
	c := a.lock.Client
	c.Record.Use(c.Clock().Mono, c.Config.StaleWaiterTimeout)
	if a.holder != "" {
		c.Labels.Fetch(a.holder)
	}
}

// reportNoExpiry logs a lock without an expiry, which a refusal shows by its remaining time.
func (a *acquisition) reportNoExpiry(left time.Duration) {
	if left < 0 && a.lock.spec.IsLock() {
		a.lock.Client.Reporter.Log(report.NoticeNoExpiry, a.lock.Names.Key)
	}
}
