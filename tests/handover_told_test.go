package tests

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A release that puts another owner of its client into the queue, where strangers may go first. What
// the client is told before the answer comes counts all the same: it asks. Else it would wait for its
// next poll, a minute, for a lock that is free.

// keptAnswer is such a release whose answer is kept back.
type keptAnswer struct {
	server *rig.Server
	admin  *rig.Admin
	tap    *rig.Tap
	client *latchkey.Client
	name   string
	open   func(*latchkey.Client, string) anyLock
}

func newKeptAnswer(t *testing.T, k kind) keptAnswer {
	t.Helper()
	rig.Need(t, rig.Single) // where a client is told of all locks on one channel
	options := seldom()
	options.Turn = -1
	server, tap := rig.Shared(), rig.NewTap(t, rig.Shared())
	c := keptAnswer{server, rig.NewAdmin(t, server), tap, connectVia(t, server, tap.Addr(), options), rig.Name(t), k.open}
	subscribeRaw(t, server, k.channelOf(c.name))
	return c
}

// release gives a hold back that somebody is in line for, has something happen when the server has
// executed that, and awaits who is in line.
func (c keptAnswer) release(t *testing.T, hold *latchkey.Hold, meanwhile func()) {
	t.Helper()
	waiter := lockInLine(within(t, soon), t, c.open(c.client, c.name))
	answer := c.tap.HoldReply(rig.Both(rig.Named("EVAL", "EVALSHA"), rig.Mentions(c.name)))
	released := make(chan error, 1)
	go func() { released <- hold.Unlock(context.Background()) }()
	rig.Await(t, soon, "the release", answer.Arrived)
	meanwhile()
	answer.Release()
	require.NoError(t, rig.Await(t, soon, "the answer", released))
	next := rig.Await(t, soon, "the waiter", waiter)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// The client is told to ask.
func TestHandover_told_to_ask_before_the_answer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		c := newKeptAnswer(t, k)
		before := mustLock(t, k.open(connect(t, c.server), c.name))
		waiting := lockInBackground(within(t, soon), c.open(c.client, c.name))
		queued(t, c.admin, c.name, 1)
		mustUnlock(t, before)
		granted := rig.Await(t, soon, "the client listens, and has the lock", waiting)
		require.NoError(t, granted.err)
		told := subscribeRaw(t, c.server, "latchkey:{"+c.client.ID()+"}")
		c.release(t, granted.hold, func() {
			rig.Await(t, soon, "the call to ask", told)
			rest(leeway / 30) // it asks a moment later
		})
	}, handedOver)
}

// The client begins to listen.
func TestHandover_listens_before_the_answer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		c, other := newKeptAnswer(t, k), rig.Name(t)+":other"
		hold, busy := mustLock(t, c.open(c.client, c.name)), mustLock(t, k.open(connect(t, c.server), other))
		listens := c.tap.HoldCommand(rig.Both(rig.Subscribing, rig.MentionsPrefix("latchkey:{")))
		waiting := lockInBackground(within(t, soon), c.open(c.client, other))
		rig.Await(t, soon, "the subscription", listens.Arrived)
		c.release(t, hold, func() {
			c.tap.Forget()
			listens.Release()
			rig.Eventually(t, soon, "the client knows that it listens", func() error {
				if len(c.tap.Commands()) == 0 {
					return errors.New("the other waiter has not asked again")
				}
				return nil
			})
		})
		mustUnlock(t, busy)
		next := rig.Await(t, soon, "the other waiter", waiting)
		require.NoError(t, next.err)
		mustUnlock(t, next.hold)
	}, handedOver)
}
