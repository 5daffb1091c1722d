package latchkey

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// attempter is whoever stands in front of a wait queue: an acquisition, or what else waits for a
// change on the server.
type attempter interface {
	// attempt asks the server once. ErrNotAcquired means that it is not time yet, and comes
	// with the ms after which to ask again if nothing is heard, negative if that is not
	// known.
	attempt(ctx context.Context, round int) (left time.Duration, err error)
	// pause prepares the rest after such an answer, and returns how long it may take.
	pause(g *waitQueue, round int, left time.Duration) time.Duration
	// what names the object, for the log.
	what() string
}

// waitInFront is the wait loop of the library. The front of a wait queue asks, and rests
// until something hints that asking again may succeed: a message, the beginning or end
// of the subscription, a release inside this client, the end of the holder's lease, the
// poll ceiling. The first refusal subscribes, and the confirmation is such a hint, so
// that a release just before it is not missed.
func (c *Client) waitInFront(ctx context.Context, g *waitQueue, a attempter) error {
	for round := 0; ; round++ {
		pause := c.pollPause()
		if round > 0 || !g.heldHere() {
			g.drain()
			g.asks()
			left, err := a.attempt(ctx, round)
			if !ofContext(err) {
				g.told(err)
			}
			if err == nil || !worthWaiting(ctx, err) {
				return g.waitError(ctx, err, nil)
			}
			pause = c.pause(g, a, round, left, err)
		}
		if err := c.rest(ctx, g, pause); err != nil {
			return g.waitError(ctx, err, nil)
		}
	}
}

// pause is how long to rest after a failure.
func (c *Client) pause(g *waitQueue, a attempter, round int, left time.Duration, err error) time.Duration {
	if errors.Is(err, ErrNotAcquired) {
		return a.pause(g, round, left)
	}
	c.reporter.log(noticeTrouble, a.what(), slog.Any("error", err))
	return jitter(longPause)
}

// rest waits for a hint. It returns an error when there is no use in going on.
func (c *Client) rest(ctx context.Context, g *waitQueue, pause time.Duration) error {
	if err := delay(ctx, c.closing, g.wake, pause); err != nil {
		return err
	}
	if pause := g.yieldPause(); pause > 0 {
		return rest(ctx, c.closing, pause)
	}
	return nil
}

// An acquisition asks for the ownership that is to begin.
func (r *request) attempt(ctx context.Context, round int) (time.Duration, error) {
	return r.ownership.attempt(ctx, r, round)
}

func (r *request) what() string { return r.ownership.lock.name }

// pause relies on messages, or on what else wakes the waiters of a kind of lock.
func (r *request) pause(g *waitQueue, round int, left time.Duration) time.Duration {
	t := r.ownership
	c, kind := t.client, t.lock.spec
	if left < 0 && !kind.shared {
		c.reporter.log(noticeNoExpiry, t.lock.key)
	}
	if t.fairWaiter != nil {
		return t.fairPause(left)
	}
	if kind.backoff != nil {
		g.subscribe(nil, "")
		return kind.backoff.pause(round)
	}
	g.subscribe(c.notifier, t.lock.channel)
	pause := c.pollPause()
	if kind.poll > 0 {
		pause = min(pause, jitter(kind.poll))
	}
	switch {
	case kind.side == KindWrite:
		pause = min(pause, c.options.StaleWaiterTimeout/3) // to count as alive
	case kind.shared:
		pause = min(pause, max(c.patienceInFront(), time.Millisecond)) // the same
	}
	return until(left, pause)
}

func (t *ownership) waitInFront(ctx context.Context, r *request, g *waitQueue) error {
	r.ownership = t
	return t.client.waitInFront(ctx, g, r)
}
