package tests

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A release puts another owner of its client into the queue, and strangers may go first. A message
// that the client receives before the reply to the release still counts: the client tries to
// acquire. Otherwise it would wait a minute for its next poll, although the lock is free.

// keptAnswer is such a release, whose reply is held back.
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
	rig.Need(t, rig.Single) // where a client receives the messages of all locks on one channel
	options := seldom()
	options.Tuning.Turn, options.RetryBudget = -1, time.Minute
	server, tap := rig.Shared(), rig.NewTap(t, rig.Shared())
	return keptAnswer{server, rig.NewAdmin(t, server), tap, connectVia(t, server, tap.Addr(), options), rig.Name(t), k.open}
}

// release releases a hold that a goroutine waits for, calls meanwhile when the server has executed
// the release, and waits until that goroutine has acquired the lock.
func (c keptAnswer) release(t *testing.T, hold *latchkey.Hold, meanwhile func()) {
	t.Helper()
	waiter := lockInLine(within(t, time.Minute), t, c.open(c.client, c.name))
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

// The client receives a message that tells it to try.
func TestHandover_message_to_retry_before_the_answer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		c := newKeptAnswer(t, k)
		subscribeRaw(t, c.server, k.channelOf(c.name)) // a stranger
		before := mustLock(t, k.open(connect(t, c.server), c.name))
		waiting := lockInBackground(within(t, time.Minute), c.open(c.client, c.name))
		queued(t, c.admin, c.name, 1)
		mustUnlock(t, before)
		granted := rig.Await(t, soon, "the client listens, and has the lock", waiting)
		require.NoError(t, granted.err)
		told := subscribeRaw(t, c.server, "latchkey:{"+c.client.ID()+"}")
		c.release(t, granted.hold, func() {
			rig.Await(t, soon, "the call to ask", told)
			rest(150 * time.Millisecond) // it tries shortly afterwards
		})
	}, handedOver)
}

// The client starts to listen before it gets the reply.
func TestHandover_listens_before_the_answer(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		c, other := newKeptAnswer(t, k), rig.Name(t)+":other"
		subscribeRaw(t, c.server, k.channelOf(c.name)) // a stranger
		hold, busy := mustLock(t, c.open(c.client, c.name)), mustLock(t, k.open(connect(t, c.server), other))
		listens := c.tap.HoldCommand(rig.Both(rig.Subscribing, rig.MentionsPrefix("latchkey:{")))
		waiting := lockInBackground(within(t, time.Minute), c.open(c.client, other))
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

// The client starts to listen, because of another waiter, while an attempt without a place in the
// queue is in flight: the waiter tries again.
func TestHandover_listens_before_the_refusal(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		c, other, theirs := newKeptAnswer(t, k), rig.Name(t)+":other", connect(t, rig.Shared())
		mustLock(t, k.open(theirs, c.name))
		mustLock(t, k.open(theirs, other))
		listens := c.tap.HoldCommand(rig.Both(rig.Subscribing, rig.MentionsPrefix("latchkey:{")))
		lockInBackground(within(t, time.Minute), c.open(c.client, other))
		rig.Await(t, soon, "the subscription", listens.Arrived)
		answer := c.tap.HoldReply(rig.Both(rig.Named("EVAL", "EVALSHA"), rig.Mentions(c.name)))
		lockInBackground(within(t, time.Minute), c.open(c.client, c.name))
		rig.Await(t, soon, "the refusal", answer.Arrived)
		listens.Release()
		queued(t, c.admin, other, 1) // the client knows that it listens
		answer.Release()
		queued(t, c.admin, c.name, 1)
	}, handedOver)
}

// An owner receives its grant late: its client has already acquired the lock and is releasing it.
// The hold ends by its own release and is not lost.
func TestHandover_grant_during_the_release(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		c := newKeptAnswer(t, k)
		channel := "latchkey:{" + c.client.ID() + "}"
		told := subscribeRaw(t, c.server, channel)
		before := mustLock(t, k.open(connect(t, c.server), c.name))
		waiting := lockInBackground(within(t, time.Minute), c.open(c.client, c.name))
		queued(t, c.admin, c.name, 1)
		mustUnlock(t, before)
		grant := rig.Await(t, soon, "the grant", told)
		granted := rig.Await(t, soon, "the lock", waiting)
		require.NoError(t, granted.err)

		sent := func(match rig.Match) {
			t.Helper()
			rig.Eventually(t, soon, "a command", func() error {
				if !slices.ContainsFunc(c.tap.Commands(), match) {
					return errors.New("it has not been sent")
				}
				return nil
			})
		}
		extension := rig.Mentions("60000")
		goOn := c.tap.Refuse(extension, "BUSY for a moment")
		go func() { _ = granted.hold.Extend(context.Background(), time.Minute) }()
		sent(extension) // which the release waits for
		released := make(chan error, 1)
		go func() { released <- granted.hold.Unlock(context.Background()) }()
		rig.Await(t, soon, "the release", granted.hold.Context(t.Context()).Done())
		require.Positive(t, c.admin.Publish(channel, grant))
		// The client gives a grant to an unknown owner back, after it has handled everything that
		// came before.
		unknown := c.client.ID() + ":987654321"
		c.admin.Publish(channel, strings.ReplaceAll(grant, strings.Fields(grant)[2], unknown))
		sent(rig.Mentions(unknown))
		goOn()
		require.NoError(t, rig.Await(t, soon, "the release", released))
		rig.Eventually(t, soon, "nothing is left", free(c.admin, c.name))
	}, handedOver)
}
